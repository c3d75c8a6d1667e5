/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The operator's own credential: loaded at the start, and again when its files change. */
#include "credential/state.h"

/* Loads, gives up what rights are not needed, sends, and arms the timer. 0, or negative after child_fatal().
 */
int credential_begin(struct credential *credential);
/* Looks at the files again, or runs the plugin again. Tells the others when something changed, or when
 * somebody asked for the first time. What cannot be read, or leads to another cluster, leaves the old
 * credential in use. 0, or negative after child_fatal(). */
int credential_reload(struct credential *credential, bool asked);
void credential_done(struct credential *credential); /* wipes */
