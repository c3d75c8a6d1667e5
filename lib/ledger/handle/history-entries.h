/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Entries of the history on their way to the table. They wait in memory until the changed rows are written,
 * and are lost with these if a commit fails.
 */
#include "ledger/row/row.h"

struct ledger;

/* Copies the entry. 0, -ENOMEM. */
int ledger_history_keep(struct ledger *ledger, const struct ledger_history *entry);
/* Writes all that wait, into the open transaction, and removes what is too much then. */
int ledger_history_flush(struct ledger *ledger);
void ledger_history_forget(struct ledger *ledger); /* those that wait, and the count of what is there */
