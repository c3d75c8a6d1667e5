/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Rows in the order of the times at which they are due (next_realtime), each visited once until its time is
 * set anew. Times are microseconds of the ledger's clock.
 */
#include "ledger/row/row.h"

struct ledger;

/* Visits the rows that are due at `now`, earliest first, at most `limit`. The visitor may change rows.
 * Returns how many, or a negative errno; 0 as well while the ledger cannot be written: nothing is due
 * then. */
int ledger_visit_due(struct ledger *ledger, uint64_t now, size_t limit, ledger_visit_t visit,
                     void *userdata);
/* When the next row will be due that was not visited yet; 0 = none. Never too late, perhaps too early: rows
 * whose time was set anew are not looked for. While the ledger cannot be written: `now`. */
int ledger_next_due(struct ledger *ledger, uint64_t now, uint64_t *ret_realtime);
void ledger_due_again(struct ledger *ledger); /* forgets which rows were visited */
