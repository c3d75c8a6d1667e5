/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger's memory of how a row's last run ended. Read when somebody asks: nothing is prepared. */
#include "supervisor/ledger-internal.h"

static const char *text(sqlite3_stmt *statement, int column)
{
        const unsigned char *found = sqlite3_column_text(statement, column);

        return found ? (const char *)found : "";
}

int ledger_run_see(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                   ledger_see_run_t see, void *userdata)
{
        struct ledger_run run = {.action = "", .reason = "", .result = "", .version = ""};
        sqlite3_stmt *statement;
        int code,
                r = ledger_errno(ledger->database,
                                 sqlite3_prepare_v2(ledger->database,
                                                    "SELECT ran_realtime, ran_usec, ran_action, ran_reason,"
                                                    " ran_result, ran_version FROM ledger"
                                                    " WHERE watch = ?1 AND key = ?2 AND uid = ?3",
                                                    -1, &statement, NULL));

        if (r < 0)
                return r;
        r = ledger_flush(ledger);
        if (r < 0) {
                sqlite3_finalize(statement);
                return r;
        }
        sqlite3_bind_text(statement, 1, watch, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 2, key, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 3, uid, -1, SQLITE_STATIC);
        code = sqlite3_step(statement);
        r = ledger_errno(ledger->database, code);
        if (code == SQLITE_ROW)
                run = (struct ledger_run){
                        .ended_realtime = (uint64_t)sqlite3_column_int64(statement, 0),
                        .duration_usec = (uint64_t)sqlite3_column_int64(statement, 1),
                        .action = text(statement, 2),
                        .reason = text(statement, 3),
                        .result = text(statement, 4),
                        .version = text(statement, 5),
                };
        if (r >= 0)
                r = see(&run, userdata);
        sqlite3_finalize(statement);
        return r;
}
