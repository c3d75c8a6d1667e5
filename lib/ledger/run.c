/* SPDX-License-Identifier: Apache-2.0 */
/* How a row's last run ended, as the ledger remembers it. Read on request only. */
#include <errno.h>

#include "ledger/internal.h"

int ledger_run_see(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                   ledger_see_run_t see, void *userdata)
{
        struct ledger_run run = {.action = "", .reason = "", .result = "", .version = ""};
        sqlite3_stmt *statement;
        int code, r = ledger_try_flush(ledger);

        if (r < 0 && r != -EBUSY)
                return r;
        statement = ledger_bind(ledger, STATEMENT_RUN, watch, key, uid);
        code = sqlite3_step(statement);
        r = ledger_errno(ledger->database, code);
        if (code == SQLITE_ROW && sqlite3_column_int(statement, 6) != 1)
                r = -EBADMSG;
        else if (code == SQLITE_ROW)
                run = (struct ledger_run){
                        .ended_realtime = (uint64_t)sqlite3_column_int64(statement, 0),
                        .duration_usec = (uint64_t)sqlite3_column_int64(statement, 1),
                        .action = ledger_column(statement, 2),
                        .reason = ledger_column(statement, 3),
                        .result = ledger_column(statement, 4),
                        .version = ledger_column(statement, 5),
                };
        if (r >= 0)
                r = see(&run, userdata);
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);
        return r;
}
