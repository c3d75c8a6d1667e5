/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Counts of rows, watch by watch, with the open transaction. They are kept while rows are written, because
 * to count 100,000 rows takes longer than a turn of the loop may; they are counted again at the start, and
 * after a transaction was given up. Without memory for them they are forgotten, and counted again when
 * asked for.
 */
#include <stdbool.h>
#include <stdint.h>

#include "ledger/failing.h"
#include "ledger/row/row.h"

struct ledger;

struct ledger_tally {
        struct ledger_tally *next;
        uint64_t rows, quarantined, crashed;
        struct ledger_failing failing;
        char watch[]; /* that has or had rows */
};

/* Notes that a row is written. `before`: the row as the database has it, NULL: not at all; `after` NULL: it
 * is removed. */
void ledger_tally_note(struct ledger *ledger, const char *watch, const struct row_index *before,
                       const struct row_index *after);
int ledger_tallies_know(
        struct ledger *ledger); /* counts, unless the counts are known; 0, a negative errno */

/* Borrowed until the tallies are forgotten. NULL: the watch never had rows. */
struct ledger_tally *ledger_tally_find(struct ledger *ledger, const char *watch);
void ledger_tallies_forget(struct ledger *ledger); /* also frees them */

/*
 * The last row that was visited as due. Its time stays in the ledger: if the operator dies before its run,
 * it is due at once after the restart, not later. How soon the next row after it is due is remembered,
 * because the caller asks at the end of every run. Zeros are a cursor in front of all rows.
 */
struct due_cursor {
        uint64_t realtime;         /* usec, as all times here; of the row */
        char *watch, *key, *uid;   /* owned; NULL: no row was visited yet */
        uint64_t visited_realtime; /* the time of the last visit */
        uint64_t soonest; /* the time of the next row after it, which may be gone by now; 0 = none */
        bool soonest_known;
};

void due_cursor_reset(struct due_cursor *cursor); /* also frees what it owns */

/* Must be called with the time of each visit. A clock that was set back resets the cursor: rows that are
 * written from now on are due before those that were visited. */
void due_cursor_see_clock(struct due_cursor *cursor, uint64_t now);
int due_cursor_move(struct due_cursor *cursor, uint64_t realtime, const char *watch, const char *key,
                    const char *uid); /* 0, -ENOMEM */

/* Notes that a row is due at this time from now on (0: it is not); keeps `soonest` right without a question
 * to the database. */
void due_cursor_note(struct due_cursor *cursor, uint64_t next_realtime);
