/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/handle/tally.h"

#include <errno.h>
#include <string.h>

#include "ledger/database/result.h"
#include "ledger/handle/handle.h"
#include "ledger/handle/statement.h"

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

const struct ledger_tally *ledger_tally_find(struct ledger *ledger, const char *watch)
{
        return find(ledger, watch);
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
        tally->failing += fails ? sign : 0;
        tally->permanent += fails && index->permanent ? sign : 0;
        tally->throttled += fails && index->throttled > 0 && !index->permanent ? sign : 0;
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

/* The first column is the name of the watch; the others are the counts. */
static void take_rows(struct ledger_tally *tally, sqlite3_stmt *statement)
{
        tally->rows = (uint64_t)sqlite3_column_int64(statement, 1);
}

static void take_failing(struct ledger_tally *tally, sqlite3_stmt *statement)
{
        tally->failing = (uint64_t)sqlite3_column_int64(statement, 1);
        tally->permanent = (uint64_t)sqlite3_column_int64(statement, 2);
        tally->throttled = (uint64_t)sqlite3_column_int64(statement, 3);
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
