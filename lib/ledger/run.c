/* SPDX-License-Identifier: Apache-2.0 */
/* How a row's last run ended, as the ledger remembers it. Read on request only. */
#include <errno.h>

#include "ledger/internal.h"

/* Behind the answer whether the row is intact. */
#define PLACE(column)                                   (VALUE_##column - VALUE_ran_realtime + 1)
#define NUMBER_AT(place)                                sqlite3_column_int64(statement, place)
#define READ_NUMBER(column)                             (uint64_t) NUMBER_AT(PLACE(column))
#define READ_TEXT(column)                               ledger_column(statement, PLACE(column))
#define READ(kind, index, number, column, field, since) .field = READ_##kind(column),

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
        if (code == SQLITE_ROW && sqlite3_column_int(statement, 0) != 1)
                r = -EBADMSG;
        else if (code == SQLITE_ROW)
                run = (struct ledger_run){LEDGER_RUN(READ)};
        if (r >= 0)
                r = see(&run, userdata);
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);
        return r;
}
