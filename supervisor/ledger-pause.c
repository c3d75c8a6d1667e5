/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger's memory of watches that are paused. Rarely used: nothing is prepared. */
#include "supervisor/ledger-internal.h"

static int prepare(struct ledger *ledger, const char *sql, const char *watch, sqlite3_stmt **ret)
{
        int r = ledger_errno(ledger->database, sqlite3_prepare_v2(ledger->database, sql, -1, ret, NULL));

        if (r >= 0)
                sqlite3_bind_text(*ret, 1, watch, -1, SQLITE_STATIC);
        return r;
}

static int finish(struct ledger *ledger, sqlite3_stmt *statement)
{
        int r = ledger_errno(ledger->database, sqlite3_step(statement));

        sqlite3_finalize(statement);
        return r;
}

int ledger_pause_put(struct ledger *ledger, const char *watch, const struct ledger_pause *pause)
{
        sqlite3_stmt *statement;
        int r = prepare(ledger,
                        "INSERT OR REPLACE INTO paused (watch, since_realtime, user, reason)"
                        " VALUES (?1, ?2, ?3, ?4)",
                        watch, &statement);

        if (r < 0)
                return r;
        sqlite3_bind_int64(statement, 2, (sqlite3_int64)pause->since_realtime);
        sqlite3_bind_int64(statement, 3, (sqlite3_int64)pause->user);
        sqlite3_bind_text(statement, 4, pause->reason, -1, SQLITE_STATIC);
        return finish(ledger, statement);
}

int ledger_pause_remove(struct ledger *ledger, const char *watch)
{
        sqlite3_stmt *statement;
        int r = prepare(ledger, "DELETE FROM paused WHERE watch = ?1", watch, &statement);

        return r < 0 ? r : finish(ledger, statement);
}

int ledger_pause_see(struct ledger *ledger, const char *watch, ledger_see_pause_t see, void *userdata)
{
        sqlite3_stmt *statement;
        int code, r = prepare(ledger, "SELECT since_realtime, user, reason FROM paused WHERE watch = ?1",
                              watch, &statement);

        if (r < 0)
                return r;
        code = sqlite3_step(statement);
        r = ledger_errno(ledger->database, code);
        if (code == SQLITE_ROW) {
                const unsigned char *reason = sqlite3_column_text(statement, 2);
                struct ledger_pause pause = {
                        .since_realtime = (uint64_t)sqlite3_column_int64(statement, 0),
                        .user = (uint64_t)sqlite3_column_int64(statement, 1),
                        .reason = reason ? (const char *)reason : "",
                };

                r = see(&pause, userdata);
        }
        sqlite3_finalize(statement);
        return r;
}
