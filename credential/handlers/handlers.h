/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What all handlers are given for themselves: at the start, and when files have changed. */
#include "credential/state.h"

/* Copies everything and prepares to ask for tokens; what cannot be had at the start ends us (child_fatal()).
 * on_refused: as of account_begin(). 0 or negative. */
int handlers_begin(struct credential *credential, void (*on_refused)(struct credential *credential));
/* Looks at the files again; the supervisor is told of what has changed in that. */
void handlers_refresh(struct credential *credential);
void handlers_done(struct credential *credential);
