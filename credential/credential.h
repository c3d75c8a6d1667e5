/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The operator's own credential: loaded at the start, and again when its files change. */
#include "credential/state.h"

/* Loads, gives up what rights are not needed, sends, and arms the timer. 0, or negative after child_fatal().
 */
int credential_begin(struct credential *credential);
/* Looks at the files again, or runs the plugin again. Hands the credential out if it has changed, or if
 * somebody asks for the first time. If the files cannot be read, or lead to another cluster, the old credential
 * stays in use. 0, or negative after child_fatal(). */
int credential_reload(struct credential *credential, bool asked);
void credential_done(struct credential *credential); /* wipes */
