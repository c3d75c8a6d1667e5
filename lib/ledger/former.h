/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Former content of objects, for a rollback that is under way. Older releases kept it in the ledger; now it
 * stands in files (lib/os/kept.h). Both functions commit first. */
#include <stddef.h>

#include "os/kept.h"

struct ledger;

/* Hands the content of Secrets that older releases wrote here to `keep`, which returns 0 and an id, or a
 * negative errno: that content is lost. Then writes the file anew without it, free pages and log included;
 * once. 1: that was done now; 0: before; or a negative errno. */
typedef int (*ledger_keep_t)(const char *text, size_t size, char id[KEPT_ID_SIZE], void *userdata);
int ledger_erase_former(struct ledger *ledger, ledger_keep_t keep, void *userdata);

/* Whether an unfinished run refers to this content: 1, 0, or a negative errno. */
int ledger_settling_names(struct ledger *ledger, const char *id);
