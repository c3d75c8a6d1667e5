/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows in the order of the times at which they are due. A cursor stands on the last row that was visited;
 * how soon the first row behind it is due is remembered, because the caller asks at the end of every run.
 */
#include <errno.h>

#include "ledger/internal.h"

void ledger_due_again(struct ledger *ledger)
{
        struct due_cursor *cursor = &ledger->due;

        free(cursor->watch);
        free(cursor->key);
        free(cursor->uid);
        *cursor = (struct due_cursor){0};
}

/* A clock that was set back: what is written from now on is due before what was visited. */
static void see_clock(struct ledger *ledger, uint64_t now)
{
        if (now < ledger->due.visited_realtime)
                ledger_due_again(ledger);
        ledger->due.visited_realtime = now;
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
        struct due_cursor *cursor = &due->ledger->due;
        int r = due->visit(watch, row, due->userdata);

        cursor->realtime = row->next_realtime;
        if (r >= 0)
                r = text_replace(&cursor->watch, watch);
        if (r >= 0)
                r = text_replace(&cursor->key, row->key);
        if (r >= 0)
                r = text_replace(&cursor->uid, row->uid);
        return r;
}

int ledger_visit_due(struct ledger *ledger, uint64_t now, size_t limit, ledger_visit_t visit, void *userdata)
{
        sqlite3_stmt *statement = ledger->statement[STATEMENT_DUE];
        struct due_visit due = {ledger, visit, userdata};
        int r = ledger_try_flush(ledger);

        see_clock(ledger, now);
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
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);
        return ledger_errno(ledger->database, code);
}

int ledger_next_due(struct ledger *ledger, uint64_t now, uint64_t *ret_realtime)
{
        int64_t due = 0;
        int r = 0;

        see_clock(ledger, now);
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
