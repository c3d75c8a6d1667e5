/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/ledger-due.h"

#include <errno.h>

#include "ledger/database/result.h"
#include "ledger/handle/flush.h"
#include "ledger/handle/statement.h"

void ledger_due_again(struct ledger *ledger)
{
        due_cursor_reset(&ledger->due);
}

static void bind_due(struct ledger *ledger, sqlite3_stmt *statement)
{
        struct due_cursor *cursor = &ledger->due;

        sqlite3_bind_int64(statement, 1, (sqlite3_int64)cursor->realtime);
        sqlite3_bind_text(statement, 2, cursor->watch ? cursor->watch : "", -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 3, cursor->key ? cursor->key : "", -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 4, cursor->uid ? cursor->uid : "", -1, SQLITE_STATIC);
}

struct due_visit {
        struct ledger *ledger;
        ledger_visit_t visit;
        void *userdata;
};

static int visit_due(const char *watch, const struct ledger_row *row, void *userdata)
{
        const struct due_visit *due = userdata;
        int r = due->visit(watch, row, due->userdata);

        return r < 0 ? r : due_cursor_move(&due->ledger->due, row->next_realtime, watch, row->key, row->uid);
}

int ledger_visit_due(struct ledger *ledger, uint64_t now, size_t limit, ledger_visit_t visit, void *userdata)
{
        sqlite3_stmt *statement = ledger->statement[STATEMENT_DUE];
        struct due_visit due = {ledger, visit, userdata};
        int r = ledger_try_flush(ledger);

        due_cursor_see_clock(&ledger->due, now);
        ledger->due.soonest_known = false;
        if (r < 0)
                return r == -EBUSY ? 0 : r; /* ledger_next_due() says when to come again */
        bind_due(ledger, statement);
        sqlite3_bind_int64(statement, 5, (sqlite3_int64)now);
        sqlite3_bind_int64(statement, 6, (sqlite3_int64)limit);
        return ledger_visit_page(ledger, statement, limit, visit_due, &due);
}

static int query_number(struct ledger *ledger, enum ledger_statement which, int64_t *ret)
{
        sqlite3_stmt *statement = ledger->statement[which];
        int code = sqlite3_step(statement);

        if (code == SQLITE_ROW)
                *ret = sqlite3_column_int64(statement, 0);
        ledger_reset(statement);
        return ledger_errno(ledger->database, code);
}

int ledger_next_due(struct ledger *ledger, uint64_t now, uint64_t *ret_realtime)
{
        int64_t due = 0;
        int r = 0;

        due_cursor_see_clock(&ledger->due, now);
        if (!ledger->due.soonest_known) {
                r = ledger_try_flush(ledger);
                if (r == -EBUSY)
                        *ret_realtime = now;
                if (r < 0)
                        return r == -EBUSY ? 0 : r;
                bind_due(ledger, ledger->statement[STATEMENT_NEXT_DUE]);
                r = query_number(ledger, STATEMENT_NEXT_DUE, &due);
                ledger->due.soonest = (uint64_t)due;
                ledger->due.soonest_known = r >= 0;
        }
        if (r >= 0)
                *ret_realtime = ledger->due.soonest;
        return r;
}
