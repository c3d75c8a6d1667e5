/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The end of a turn of the loop: what it has changed is written, in one transaction. 0 or a negative
 * errno; after a failed commit the changes are lost, and the ledger is as of the last commit. */
#include <stdbool.h>

struct ledger;

/* Begins a transaction in which many rows will be looked at: each costs half then. It ends with the
 * commit. */
int ledger_hold(struct ledger *ledger);
/* The same for a caller that then looks at many rows and must not wait: -EBUSY while the ledger cannot be
 * written. */
int ledger_try_hold(struct ledger *ledger);

/* Writes all changes and ends the transaction; without changes it does nothing. */
int ledger_commit(struct ledger *ledger);
int ledger_try_commit(struct ledger *ledger); /* -EBUSY: not now; nothing has changed */
bool ledger_dirty(const struct ledger *ledger);
/* The transaction is so large that writing it takes milliseconds: commit before more changes. */
bool ledger_is_full(const struct ledger *ledger);
