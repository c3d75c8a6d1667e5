/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The last row that was visited as due. Its time stays in the ledger: if the operator dies before its run,
 * it is due at once after the restart, not later. How soon the next row behind it is due is remembered,
 * because the caller asks at the end of every run. Zeros are a cursor in front of all rows.
 */
#include <stdbool.h>
#include <stdint.h>

struct due_cursor {
        uint64_t realtime;         /* usec, as all times here; of the row */
        char *watch, *key, *uid;   /* owned; NULL: no row was visited yet */
        uint64_t visited_realtime; /* the time of the last visit */
        uint64_t soonest; /* the time of the next row behind it, which may be gone by now; 0 = none */
        bool soonest_known;
};

void due_cursor_reset(struct due_cursor *cursor); /* also frees what it owns */
/* To be called with the time of each visit. A clock that was set back resets the cursor: rows that are
 * written from now on are due before those that were visited. */
void due_cursor_see_clock(struct due_cursor *cursor, uint64_t now);
int due_cursor_move(struct due_cursor *cursor, uint64_t realtime, const char *watch, const char *key,
                    const char *uid); /* 0, -ENOMEM */
/* A row is due at this time from now on (0: it is not); keeps `soonest` right without a question to the
 * database. */
void due_cursor_note(struct due_cursor *cursor, uint64_t next_realtime);
