/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tokens of service accounts (TokenRequest), for handlers that ask the API server themselves. */
#include "credential/handlers/files.h"
#include "credential/state.h"

/* Whether any handler is to act as a service account. */
bool account_is_wanted(const struct credential *credential);
/* Makes the client that asks, where one is wanted. on_refused: the server has answered 401 to the credential
 * that is in use. 0 or a negative errno. */
int account_begin(struct credential *credential, void (*on_refused)(struct credential *credential));
/* Goes on with the credential that is in use from now on. 0, or negative, perhaps after child_fatal(). */
int account_published(struct credential *credential);
/* Ends what is under way for one handler, and frees what account.c keeps in it. */
void account_done(struct access *access);

/* What all handlers are given for themselves: at the start, and when files have changed. */

/* Copies everything and prepares to ask for tokens; what cannot be had at the start ends us (child_fatal()).
 * on_refused: as of account_begin(). 0 or negative. */
int handlers_begin(struct credential *credential, void (*on_refused)(struct credential *credential));
/* Looks at the files again; the supervisor is told of what has changed in that. */
void handlers_refresh(struct credential *credential);
void handlers_done(struct credential *credential);
