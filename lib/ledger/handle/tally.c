/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/handle/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ledger/database/result.h"
#include "ledger/handle/handle.h"
#include "ledger/handle/statement.h"

void ledger_tallies_forget(struct ledger *ledger)
{
        while (ledger->tally) {
                struct ledger_tally *next = ledger->tally->next;

                free(ledger->tally);
                ledger->tally = next;
        }
        ledger->tallies_known = false;
}

/* To the front: rows are written watch by watch. */
struct ledger_tally *ledger_tally_find(struct ledger *ledger, const char *watch)
{
        struct ledger_tally **place = &ledger->tally, *found;

        while (*place && strcmp((*place)->watch, watch) != 0)
                place = &(*place)->next;
        found = *place;
        if (!found)
                return NULL;
        *place = found->next;
        found->next = ledger->tally;
        return ledger->tally = found;
}

static struct ledger_tally *find_or_add(struct ledger *ledger, const char *watch)
{
        struct ledger_tally *found = ledger_tally_find(ledger, watch), *added;
        size_t size = strlen(watch) + 1;

        if (found)
                return found;
        added = calloc(1, sizeof(*added) + size);
        if (!added)
                return NULL;
        memcpy(added->watch, watch, size);
        added->next = ledger->tally;
        return ledger->tally = added;
}

static void tally_add(struct ledger_tally *tally, const struct row_index *index, uint64_t sign)
{
        bool fails = index->attempts > 0;

        tally->rows += sign;
        tally->quarantined += index->quarantined_until > 0 ? sign : 0;
        tally->crashed += index->crashed_realtime > 0 ? sign : 0;
        tally->failing.failing += fails ? sign : 0;
        tally->failing.permanent += fails && index->permanent ? sign : 0;
        tally->failing.throttled += fails && index->throttled > 0 && !index->permanent ? sign : 0;
}

void ledger_tally_note(struct ledger *ledger, const char *watch, const struct row_index *before,
                       const struct row_index *after)
{
        struct ledger_tally *tally = ledger->tallies_known ? find_or_add(ledger, watch) : NULL;

        if (!tally) {
                ledger_tallies_forget(ledger);
                return;
        }
        if (before)
                tally_add(tally, before, UINT64_MAX); /* takes one away */
        if (after)
                tally_add(tally, after, 1);
}

/* ---- counting */

/* Watch, rows, quarantined, crashed, failing, permanent, throttled: each from the index that has it. */
#define COUNT                                                                                               \
        "SELECT watch, count(*), 0, 0, 0, 0, 0 FROM ledger GROUP BY watch"                                  \
        " UNION ALL SELECT watch, 0, sum(quarantined_until > 0), count(*), 0, 0, 0"                         \
        " FROM ledger INDEXED BY ledger_crashed WHERE crashed_realtime > 0 GROUP BY watch"                  \
        " UNION ALL SELECT watch, 0, 0, 0, count(*), sum(permanent), sum(throttled > 0 AND NOT permanent)"  \
        " FROM ledger INDEXED BY ledger_failing WHERE attempts > 0 GROUP BY watch"

static bool take_tally(struct ledger *ledger, sqlite3_stmt *statement)
{
        struct ledger_tally *tally = find_or_add(ledger, ledger_column(statement, 0));

        if (!tally)
                return false;
        tally->rows += (uint64_t)sqlite3_column_int64(statement, 1);
        tally->quarantined += (uint64_t)sqlite3_column_int64(statement, 2);
        tally->crashed += (uint64_t)sqlite3_column_int64(statement, 3);
        tally->failing.failing += (uint64_t)sqlite3_column_int64(statement, 4);
        tally->failing.permanent += (uint64_t)sqlite3_column_int64(statement, 5);
        tally->failing.throttled += (uint64_t)sqlite3_column_int64(statement, 6);
        return true;
}

int ledger_tallies_know(struct ledger *ledger)
{
        _cleanup_statement_ sqlite3_stmt *statement = NULL;
        int code, r;

        if (ledger->tallies_known)
                return 0;
        ledger_tallies_forget(ledger);
        r = ledger_prepare(ledger, COUNT, NULL, NULL, NULL, &statement);
        if (r < 0)
                return r;
        while ((code = sqlite3_step(statement)) == SQLITE_ROW && take_tally(ledger, statement))
                ;
        r = code == SQLITE_ROW ? -ENOMEM : ledger_errno(ledger->database, code);
        ledger->tallies_known = r >= 0;
        return r;
}

void due_cursor_reset(struct due_cursor *cursor)
{
        free(cursor->watch);
        free(cursor->key);
        free(cursor->uid);
        *cursor = (struct due_cursor){0};
}

void due_cursor_see_clock(struct due_cursor *cursor, uint64_t now)
{
        if (now < cursor->visited_realtime)
                due_cursor_reset(cursor);
        cursor->visited_realtime = now;
}

int due_cursor_move(struct due_cursor *cursor, uint64_t realtime, const char *watch, const char *key,
                    const char *uid)
{
        int r = text_replace(&cursor->watch, watch);

        cursor->realtime = realtime;
        if (r >= 0)
                r = text_replace(&cursor->key, key);
        if (r >= 0)
                r = text_replace(&cursor->uid, uid);
        return r;
}

void due_cursor_note(struct due_cursor *cursor, uint64_t next_realtime)
{
        if (next_realtime == 0 || next_realtime < cursor->realtime)
                return;
        if (next_realtime == cursor->realtime) /* its watch and key decide whether it is after the cursor */
                cursor->soonest_known = false;
        else if (cursor->soonest == 0 || next_realtime < cursor->soonest)
                cursor->soonest = next_realtime;
}
