/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writing the changed rows of the cache, and what is new in the history, to the database, into the open transaction: before the commit, and
 * before a statement that looks at more than one row. 0 or a negative errno, after which the transaction
 * must be given up (-EBUSY excepted).
 */
struct ledger;

int ledger_flush(struct ledger *ledger);
/* Does not wait for the gate: -EBUSY, and the changes stay in the cache. Callers that can live with the
 * state of the last commit go on then. */
int ledger_try_flush(struct ledger *ledger);
