/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tokens of service accounts (TokenRequest), for handlers that ask the API server themselves. */
#include "credential/handlers/files.h"
#include "credential/state.h"

/* Whether any handler is to act as a service account. */
bool account_is_wanted(const struct credential *credential);
/* Goes on with the credential that is in use from now on. 0, or negative, perhaps after child_fatal(). */
int account_published(struct credential *credential);

/* The files and tokens that all handlers are given for themselves: at the start, and when files have
 * changed. */

/* Copies everything and prepares to ask for tokens; what cannot be had at the start ends us (child_fatal()).
 * on_refused: the server has answered 401 to the credential that is in use. 0 or negative. */
int handlers_begin(struct credential *credential, void (*on_refused)(struct credential *credential));
/* Reads the files again, and reports changes to the supervisor. */
void handlers_refresh(struct credential *credential);
void handlers_done(struct credential *credential);
