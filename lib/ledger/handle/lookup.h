/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Single rows: found in the cache or read into it, and marked as changed. */
#include "ledger/row/cache.h"

struct ledger;

/* The row as it is now; `exists` is false for one that is not in the ledger. Borrowed until the next
 * look-up. 0 or a negative errno (-EBADMSG: its checksum is wrong). */
int ledger_look_up(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                   struct cached_row **ret);
/* Has the row written with the next commit; many changed rows are written now, where that needs no
 * waiting. */
int ledger_changed(struct ledger *ledger, struct cached_row *cached);
