/* SPDX-License-Identifier: Apache-2.0 */
/* Each page comes from an index of its own, so that rows that are well cost nothing. Used rarely: nothing is
 * prepared. */
#include "ledger/failing.h"

#include <errno.h>
#include <string.h>

#include "ledger/database/sql.h"
#include "ledger/handle/flush.h"
#include "ledger/handle/handle.h"
#include "ledger/handle/statement.h"
#include "ledger/handle/tally.h"

static int visit_rows(struct ledger *ledger, sqlite3_stmt *statement, size_t limit, ledger_visit_t visit,
                      void *userdata)
{
        int r = ledger_try_flush(ledger);

        return r >= 0 || r == -EBUSY ? ledger_visit_page(ledger, statement, limit, visit, userdata) : r;
}

/* Leaves out the watches that have failing rows, but are not configured. */
static int leave_out_known(struct ledger *ledger, const struct ledger_known *known, sqlite3_str *sql)
{
        const char *watch = "";
        int r = 0;

        while (r >= 0 && known && (watch = ledger_next_watch(ledger, watch))) {
                struct ledger_failing failing = {0};

                if (!known->is_known(watch, known->userdata))
                        r = ledger_count_failing(ledger, watch, &failing);
                if (failing.failing > 0)
                        sqlite3_str_appendf(sql, " AND watch <> %Q", watch);
        }
        return r;
}

/* The index ledger_worst has this order. */
int ledger_visit_worst(struct ledger *ledger, size_t limit, const struct ledger_known *known,
                       ledger_visit_t visit, void *userdata)
{
        sqlite3_str *sql = sqlite3_str_new(ledger->database);
        _cleanup_statement_ sqlite3_stmt *statement = NULL;
        char *text;
        int r;

        sqlite3_str_appendall(sql, "SELECT " ROW_SELECTED
                                   " FROM ledger INDEXED BY ledger_worst WHERE attempts > 0");
        r = leave_out_known(ledger, known, sql);
        sqlite3_str_appendall(sql, " ORDER BY permanent DESC, throttled > 0 DESC, attempts DESC, watch, key,"
                                   " uid LIMIT ?1");
        text = sqlite3_str_finish(sql);
        if (r >= 0)
                r = text ? ledger_prepare(ledger, text, NULL, NULL, NULL, &statement) : -ENOMEM;
        sqlite3_free(text);
        if (r < 0)
                return r;
        sqlite3_bind_int64(statement, 1, (sqlite3_int64)limit);
        return visit_rows(ledger, statement, limit, visit, userdata);
}

/* `sql`: ?1 to ?3 are the names of the place, ?4 is how many rows, ?5 the time of the place. */
static int visit_pages(struct ledger *ledger, const char *sql, const struct ledger_place *behind,
                       size_t limit, ledger_visit_t visit, void *userdata)
{
        _cleanup_statement_ sqlite3_stmt *statement = NULL;
        int r = ledger_prepare(ledger, sql, behind->watch, behind->key, behind->uid, &statement);

        if (r < 0)
                return r;
        sqlite3_bind_int64(statement, 4, (sqlite3_int64)limit);
        if (sqlite3_bind_parameter_count(statement) >= 5)
                sqlite3_bind_int64(statement, 5, (sqlite3_int64)behind->next_realtime);
        return visit_rows(ledger, statement, limit, visit, userdata);
}

int ledger_list_failing(struct ledger *ledger, const struct ledger_place *behind, size_t limit,
                        ledger_visit_t visit, void *userdata)
{
        return visit_pages(ledger,
                           "SELECT " ROW_SELECTED " FROM ledger INDEXED BY ledger_failing"
                           " WHERE attempts > 0 AND watch = ?1 AND (key, uid) > (?2, ?3)"
                           " ORDER BY key, uid LIMIT ?4",
                           behind, limit, visit, userdata);
}

#define SELECT_CRASHED                                                                                      \
        "SELECT " ROW_SELECTED " FROM ledger INDEXED BY ledger_crashed WHERE crashed_realtime > 0"
#define PAGE_OF_KEYS " AND watch = ?1 AND (key, uid) > (?2, ?3) ORDER BY key, uid LIMIT ?4"

int ledger_list_quarantined(struct ledger *ledger, const struct ledger_place *behind, size_t limit,
                            ledger_visit_t visit, void *userdata)
{
        return visit_pages(ledger, SELECT_CRASHED " AND quarantined_until > 0" PAGE_OF_KEYS, behind, limit,
                           visit, userdata);
}

int ledger_list_crashed(struct ledger *ledger, const struct ledger_place *behind, size_t limit,
                        ledger_visit_t visit, void *userdata)
{
        return visit_pages(ledger, SELECT_CRASHED PAGE_OF_KEYS, behind, limit, visit, userdata);
}

int ledger_list_waiting(struct ledger *ledger, const struct ledger_place *behind, size_t limit,
                        ledger_visit_t visit, void *userdata)
{
        return visit_pages(ledger,
                           "SELECT " ROW_SELECTED " FROM ledger INDEXED BY ledger_due"
                           " WHERE next_realtime > 0 AND (next_realtime, watch, key, uid)"
                           " > (?5, ?1, ?2, ?3) ORDER BY next_realtime, watch, key, uid LIMIT ?4",
                           behind, limit, visit, userdata);
}

/* Counts changes that are not written yet as well, where they can be written now. */
static int prepare_count(struct ledger *ledger)
{
        int r = ledger_try_flush(ledger);

        return r < 0 && r != -EBUSY ? r : ledger_tallies_know(ledger);
}

/* *ret: NULL if the watch never had rows. */
static int look_at(struct ledger *ledger, const char *watch, const struct ledger_tally **ret)
{
        int r = prepare_count(ledger);

        *ret = r < 0 ? NULL : ledger_tally_find(ledger, watch);
        return r;
}

int64_t ledger_count(struct ledger *ledger, const char *watch)
{
        const struct ledger_tally *tally;
        int r = look_at(ledger, watch, &tally);

        return tally ? (int64_t)tally->rows : r;
}

int ledger_count_failing(struct ledger *ledger, const char *watch, struct ledger_failing *ret)
{
        const struct ledger_tally *tally;
        int r = look_at(ledger, watch, &tally);

        *ret = tally ? tally->failing : (struct ledger_failing){0};
        return r;
}

int64_t ledger_count_quarantined(struct ledger *ledger, const char *watch)
{
        const struct ledger_tally *tally;
        int r = look_at(ledger, watch, &tally);

        return tally ? (int64_t)tally->quarantined : r;
}

int64_t ledger_count_crashed(struct ledger *ledger, const char *watch)
{
        const struct ledger_tally *tally;
        int r = look_at(ledger, watch, &tally);

        return tally ? (int64_t)tally->crashed : r;
}

const char *ledger_next_watch(struct ledger *ledger, const char *name)
{
        const char *found = NULL;

        if (prepare_count(ledger) < 0)
                return NULL;
        for (const struct ledger_tally *tally = ledger->tally; tally; tally = tally->next)
                if (strcmp(tally->watch, name) > 0 && (!found || strcmp(tally->watch, found) < 0))
                        found = tally->watch;
        return found;
}
