/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Counts of rows, watch by watch, with the open transaction. They are kept while rows are written, because
 * to count 100,000 rows takes longer than a turn of the loop may; they are counted anew at the start, and
 * after a transaction was given up. Without memory for them they are forgotten, and counted anew when
 * asked for.
 */
#include <stdint.h>

#include "ledger/count.h"
#include "ledger/row/row.h"

struct ledger;

struct ledger_tally {
        struct ledger_tally *next;
        uint64_t rows, quarantined;
        struct ledger_failing failing;
        char watch[]; /* that has or had rows */
};

/* A row is written. `before`: as the database has it, NULL: not at all; `after` NULL: it is removed. */
void ledger_tally_note(struct ledger *ledger, const char *watch, const struct row_index *before,
                       const struct row_index *after);
int ledger_tallies_know(
        struct ledger *ledger); /* counts, unless the counts are known; 0, a negative errno */
/* Borrowed until the tallies are forgotten. NULL: the watch never had rows. */
struct ledger_tally *ledger_tally_find(struct ledger *ledger, const char *watch);
void ledger_tallies_forget(struct ledger *ledger); /* also frees them */
