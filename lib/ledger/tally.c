/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many rows each watch has, and how many of them fail: kept while rows are written, because to count
 * 100,000 of them takes longer than a turn of the loop may. Counted anew at the start, and when a
 * transaction was given up.
 */
#include <errno.h>
#include <string.h>

#include "ledger/internal.h"

struct ledger_tally {
        char *watch;
        uint64_t rows, quarantined;
        struct ledger_failing failing;
};

void ledger_tallies_forget(struct ledger *ledger)
{
        for (size_t i = 0; i < ledger->tally_count; i++)
                free(ledger->tally[i].watch);
        free(ledger->tally);
        ledger->tally = NULL;
        ledger->tally_count = ledger->tally_last = 0;
        ledger->tallies_known = false;
}

/* NULL: there is none. */
static struct ledger_tally *find(struct ledger *ledger, const char *watch)
{
        if (ledger->tally_last < ledger->tally_count &&
            strcmp(ledger->tally[ledger->tally_last].watch, watch) == 0)
                return &ledger->tally[ledger->tally_last];
        for (size_t i = 0; i < ledger->tally_count; i++)
                if (strcmp(ledger->tally[i].watch, watch) == 0) {
                        ledger->tally_last = i;
                        return &ledger->tally[i];
                }
        return NULL;
}

static struct ledger_tally *find_or_add(struct ledger *ledger, const char *watch)
{
        struct ledger_tally *found = find(ledger, watch), *grown;
        char *name;

        if (found)
                return found;
        grown = reallocarray(ledger->tally, ledger->tally_count + 1, sizeof(*grown));
        if (grown)
                ledger->tally = grown;
        name = grown ? strdup(watch) : NULL;
        if (!name)
                return NULL;
        ledger->tally[ledger->tally_count] = (struct ledger_tally){.watch = name};
        return &ledger->tally[ledger->tally_count++];
}

static void add(struct ledger_tally *tally, const struct row_index *index, uint64_t sign)
{
        bool fails = index->attempts > 0;

        tally->rows += sign;
        tally->quarantined += index->quarantined_until > 0 ? sign : 0;
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
                add(tally, before, UINT64_MAX); /* takes one away */
        if (after)
                add(tally, after, 1);
}

/* ---- counting */

/* What its columns are, the name of the watch before them. */
static void take_rows(struct ledger_tally *tally, sqlite3_stmt *statement)
{
        tally->rows = (uint64_t)sqlite3_column_int64(statement, 1);
}

static void take_failing(struct ledger_tally *tally, sqlite3_stmt *statement)
{
        tally->failing = (struct ledger_failing){
                .failing = (uint64_t)sqlite3_column_int64(statement, 1),
                .permanent = (uint64_t)sqlite3_column_int64(statement, 2),
                .throttled = (uint64_t)sqlite3_column_int64(statement, 3),
        };
}

static void take_quarantined(struct ledger_tally *tally, sqlite3_stmt *statement)
{
        tally->quarantined = (uint64_t)sqlite3_column_int64(statement, 1);
}

static const struct {
        const char *question;
        void (*take)(struct ledger_tally *tally, sqlite3_stmt *statement);
} count[] = {
        {"SELECT watch, count(*) FROM ledger GROUP BY watch", take_rows},
        {"SELECT watch, count(*), sum(permanent), sum(throttled > 0 AND NOT permanent) FROM ledger"
         " INDEXED BY ledger_failing WHERE attempts > 0 GROUP BY watch",
         take_failing},
        {"SELECT watch, count(*) FROM ledger INDEXED BY ledger_quarantine WHERE quarantined_until > 0"
         " GROUP BY watch",
         take_quarantined},
};

static int count_all(struct ledger *ledger, size_t which)
{
        sqlite3_stmt *statement;
        int code = SQLITE_DONE,
            r = ledger_prepare(ledger, count[which].question, NULL, NULL, NULL, &statement);

        if (r < 0)
                return r;
        while (r >= 0 && (code = sqlite3_step(statement)) == SQLITE_ROW) {
                struct ledger_tally *tally = find_or_add(ledger, ledger_column(statement, 0));

                if (tally)
                        count[which].take(tally, statement);
                else
                        r = -ENOMEM;
        }
        if (r >= 0)
                r = ledger_errno(ledger->database, code);
        sqlite3_finalize(statement);
        return r;
}

int ledger_tallies_know(struct ledger *ledger)
{
        int r = 0;

        if (ledger->tallies_known)
                return 0;
        ledger_tallies_forget(ledger);
        for (size_t i = 0; i < ELEMENTS(count) && r >= 0; i++)
                r = count_all(ledger, i);
        ledger->tallies_known = r >= 0;
        return r;
}

/* ---- asking: with what is changed and not written yet, where that can be written now */

static int prepare(struct ledger *ledger)
{
        int r = ledger_try_flush(ledger);

        return r < 0 && r != -EBUSY ? r : ledger_tallies_know(ledger);
}

int64_t ledger_count(struct ledger *ledger, const char *watch)
{
        int r = prepare(ledger);
        const struct ledger_tally *tally = r < 0 ? NULL : find(ledger, watch);

        return r < 0 ? r : tally ? (int64_t)tally->rows : 0;
}

int ledger_count_failing(struct ledger *ledger, const char *watch, struct ledger_failing *ret)
{
        int r = prepare(ledger);
        const struct ledger_tally *tally = r < 0 ? NULL : find(ledger, watch);

        if (r >= 0)
                *ret = tally ? tally->failing : (struct ledger_failing){0};
        return r;
}

int64_t ledger_count_quarantined(struct ledger *ledger, const char *watch)
{
        int r = prepare(ledger);
        const struct ledger_tally *tally = r < 0 ? NULL : find(ledger, watch);

        return r < 0 ? r : tally ? (int64_t)tally->quarantined : 0;
}

const char *ledger_next_watch(struct ledger *ledger, const char *name)
{
        const char *found = NULL;

        if (prepare(ledger) < 0)
                return NULL;
        for (size_t i = 0; i < ledger->tally_count; i++)
                if (strcmp(ledger->tally[i].watch, name) > 0 &&
                    (!found || strcmp(ledger->tally[i].watch, found) < 0))
                        found = ledger->tally[i].watch;
        return found;
}
