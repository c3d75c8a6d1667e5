/* SPDX-License-Identifier: Apache-2.0 */
/* Used rarely: nothing is prepared. */
#include "ledger/ledger-pause.h"

#include <errno.h>

#include "ledger/database/result.h"
#include "ledger/database/sql.h"
#include "ledger/handle/statement.h"
#include "ledger/handle/transaction.h"

int ledger_pause_put(struct ledger *ledger, const char *watch, const struct ledger_pause *pause)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare_change(ledger,
                                      "INSERT OR REPLACE INTO paused (" PAUSE_COLUMNS ", checksum)"
                                      " VALUES (?1, ?2, ?3, ?4, row_sum(?1, ?2, ?3, ?4))",
                                      watch, NULL, NULL, &statement);

        if (r < 0)
                return r;
        sqlite3_bind_int64(statement, 2, (sqlite3_int64)pause->since_realtime);
        sqlite3_bind_int64(statement, 3, (sqlite3_int64)pause->user);
        sqlite3_bind_text(statement, 4, pause->reason, -1, SQLITE_STATIC);
        return ledger_finish(ledger, statement);
}

int ledger_pause_remove(struct ledger *ledger, const char *watch)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare_change(ledger, "DELETE FROM paused WHERE watch = ?1", watch, NULL, NULL,
                                      &statement);

        return r < 0 ? r : ledger_finish(ledger, statement);
}

int ledger_pause_see(struct ledger *ledger, const char *watch, ledger_see_pause_t see, void *userdata)
{
        _cleanup_statement_ sqlite3_stmt *statement = NULL;
        struct ledger_pause pause;
        int code, r = ledger_prepare(ledger,
                                     "SELECT since_realtime, user, reason, " PAUSE_INTACT
                                     " FROM paused WHERE watch = ?1",
                                     watch, NULL, NULL, &statement);

        if (r < 0)
                return r;
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return ledger_errno(ledger->database, code);
        pause = (struct ledger_pause){
                .since_realtime = (uint64_t)sqlite3_column_int64(statement, 0),
                .user = (uint64_t)sqlite3_column_int64(statement, 1),
                .reason = ledger_column(statement, 2),
        };
        return sqlite3_column_int(statement, 3) == 1 ? see(&pause, userdata) : -EBADMSG;
}
