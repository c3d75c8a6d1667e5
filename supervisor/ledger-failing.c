/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger's rows that have failed since their last success. All questions are answered by one partial
 * index, so that what is well costs nothing. Asked for by people, and once a heartbeat: nothing is prepared.
 */
#include <errno.h>

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
