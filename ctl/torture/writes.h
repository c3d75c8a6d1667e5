/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What operator and handlers have written, from the devserver's request log. */
#include <cjson/cJSON.h>

#include "base/text.h"

/* Appends a line for each write since *position that has changed something, without Events and without our own; *position
 * moves to the end. 0 or a negative errno. */
int writes_tell(const char *log, long *position, struct text *out);
/* Likewise, as a list of {phase, words, match, nth} in *ret (owned by the caller): which requests a fault must match (docs/devserver.md), and the
 * how many-th of them is meant. */
int writes_note(const char *log, long *position, unsigned phase, cJSON **ret);
