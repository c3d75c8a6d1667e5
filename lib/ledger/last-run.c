/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/last-run.h"

#include <errno.h>

#include "ledger/database/result.h"
#include "ledger/database/sql.h"
#include "ledger/handle/flush.h"
#include "ledger/handle/lookup.h"
#include "ledger/handle/statement.h"

int ledger_run_put(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                   const struct ledger_run *run)
{
        struct cached_row *cached;
        int r = ledger_look_up(ledger, watch, key, uid, &cached);

        if (r < 0 || !cached->exists)
                return r;
        r = cached_keep_run(cached, run);
        if (r < 0)
                return r;
        cached->has_run = true;
        return ledger_changed(ledger, cached);
}

/* Behind the answer whether the row is intact. */
#define PLACE(column)                            (VALUE_##column - VALUE_ran_realtime + 1)
#define NUMBER_AT(place)                         sqlite3_column_int64(statement, place)
#define READ_NUMBER(column)                      (uint64_t) NUMBER_AT(PLACE(column))
#define READ_TEXT(column)                        ledger_column(statement, PLACE(column))
#define READ(kind, index, number, column, field) .field = READ_##kind(column),

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
        ledger_reset(statement);
        return r;
}
