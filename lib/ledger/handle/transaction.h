/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The one open transaction: it begins with the first write of a turn of the loop and ends with the commit.
 * It carries the tables' sums. 0 or a negative errno.
 */
#include <sqlite3.h>
#include <stdint.h>

#include "ledger/database/sums.h"

struct ledger;

/* Begin a transaction, unless one is open. The second one does not wait for the gate or for a person with a
 * tool: -EBUSY. */
int ledger_begin(struct ledger *ledger);
int ledger_try_begin(struct ledger *ledger);

/* Ends the transaction, if one is open. r >= 0: commits. r < 0, or a commit that fails: rolls back, and
 * clears cache, counts and sums, which are not what the database holds; the first error is returned. */
int ledger_end(struct ledger *ledger, int r);

/* Notes the checksums of an entry that was added (`before` NULL), removed (`after` NULL) or changed. */
void ledger_sums_note(struct ledger *ledger, enum summed_table table, const uint64_t *before,
                      const uint64_t *after);

/* As ledger_prepare(), for a statement that changes a table of pauses or doubts: begins a transaction,
 * and has the table summed again with the commit. -EBADMSG: the table is not what was written. */
int ledger_prepare_change(struct ledger *ledger, const char *change, const char *watch, const char *key,
                          const char *uid, sqlite3_stmt **ret);
