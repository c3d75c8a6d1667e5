/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger's rows that have failed since their last success. All questions are answered by one partial
 * index, so that what is well costs nothing. Asked for by people, and once a heartbeat: nothing is prepared.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/ledger-internal.h"

int ledger_count_failing(struct ledger *ledger, const char *watch, struct ledger_failing *ret)
{
        sqlite3_stmt *statement;
        int code, r = ledger_try_flush(ledger);

        if (r >= 0 || r == -EBUSY)
                r = ledger_prepare(
                        ledger,
                        "SELECT count(*), sum(permanent), sum(throttled > 0 AND NOT permanent)"
                        " FROM ledger INDEXED BY ledger_failing WHERE attempts > 0 AND watch = ?1",
                        watch, NULL, NULL, &statement);
        if (r < 0)
                return r;
        code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
                *ret = (struct ledger_failing){
                        .failing = (uint64_t)sqlite3_column_int64(statement, 0),
                        .permanent = (uint64_t)sqlite3_column_int64(statement, 1),
                        .throttled = (uint64_t)sqlite3_column_int64(statement, 2),
                };
        r = ledger_errno(ledger->database, code);
        sqlite3_finalize(statement);
        return r;
}

int ledger_visit_failing(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                         size_t limit, ledger_visit_t visit, void *userdata)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger,
                               "SELECT " ROW_SELECTED " FROM ledger INDEXED BY ledger_failing"
                               " WHERE attempts > 0 AND watch = ?1 AND (key, uid) > (?2, ?3)"
                               " ORDER BY key, uid LIMIT ?4",
                               watch, key, uid, &statement);

        if (r < 0)
                return r;
        sqlite3_bind_int64(statement, 4, (sqlite3_int64)limit);
        r = ledger_flush(ledger);
        if (r >= 0)
                r = ledger_visit_page(ledger, statement, limit, visit, userdata);
        sqlite3_finalize(statement);
        return r;
}

#define WORST_FIRST " permanent DESC, throttled > 0 DESC, attempts DESC, watch, key, uid"

/* The worst are found in the index alone; only their rows are read. */
int ledger_visit_worst(struct ledger *ledger, size_t limit, ledger_visit_t visit, void *userdata)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(
                ledger,
                "SELECT " ROW_SELECTED " FROM (SELECT watch AS w, key AS k, uid AS u FROM ledger"
                " INDEXED BY ledger_failing WHERE attempts > 0 ORDER BY" WORST_FIRST " LIMIT ?1)"
                " CROSS JOIN ledger ON watch = w AND key = k AND uid = u ORDER BY" WORST_FIRST,
                NULL, NULL, NULL, &statement);

        if (r < 0)
                return r;
        sqlite3_bind_int64(statement, 1, (sqlite3_int64)limit);
        r = ledger_try_flush(ledger);
        if (r >= 0 || r == -EBUSY)
                r = ledger_visit_page(ledger, statement, limit, visit, userdata);
        sqlite3_finalize(statement);
        return r;
}

/* Rows that wait come first in the index of times, before the resyncs of all others: 2,000 are read. */
#define CHOSEN " (?1 = '' OR watch = ?1) AND (?2 = '' OR (key >= ?2 AND key < ?3)) "

static const char *state_query(const char *state)
{
        static const char *const query[][2] = {
                {"failing", "SELECT " ROW_SELECTED
                            " FROM ledger INDEXED BY ledger_failing WHERE attempts > 0 AND" CHOSEN
                            "ORDER BY watch, key, uid LIMIT ?4"},
                {"quarantined", "SELECT " ROW_SELECTED " FROM ledger INDEXED BY ledger_quarantine"
                                " WHERE quarantined_until > 0 AND" CHOSEN "ORDER BY watch, key LIMIT ?4"},
                {"waiting",
                 "SELECT " ROW_SELECTED " FROM (SELECT watch AS w, key AS k, uid AS u FROM ledger"
                 " INDEXED BY ledger_due WHERE next_realtime > 0 ORDER BY next_realtime LIMIT 2000)"
                 " CROSS JOIN ledger ON watch = w AND key = k AND uid = u WHERE next_reason <> 'resync' "
                 "AND" CHOSEN "ORDER BY next_realtime LIMIT ?4"},
        };

        for (size_t i = 0; i < ELEMENTS(query); i++)
                if (strcmp(state, query[i][0]) == 0)
                        return query[i][1];
        return NULL;
}

int ledger_visit_state(struct ledger *ledger, const char *state, const char *watch, const char *namespace,
                       size_t limit, ledger_visit_t visit, void *userdata)
{
        const char *query = state_query(state);
        char from[260] = "", to[260] = ""; /* '0' comes behind '/' */
        sqlite3_stmt *statement;
        int r;

        if (!query || strlen(namespace) > 253)
                return -EINVAL;
        if (namespace[0]) {
                snprintf(from, sizeof(from), "%s/", namespace);
                snprintf(to, sizeof(to), "%s0", namespace);
        }
        r = ledger_prepare(ledger, query, watch, from, to, &statement);
        if (r < 0)
                return r;
        sqlite3_bind_int64(statement, 4, (sqlite3_int64)limit);
        r = ledger_try_flush(ledger);
        if (r >= 0 || r == -EBUSY)
                r = ledger_visit_page(ledger, statement, limit, visit, userdata);
        sqlite3_finalize(statement);
        return r;
}
