/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/rows.h"

#include <assert.h>
#include <errno.h>

#include "ledger/database/result.h"
#include "ledger/database/sql.h"
#include "ledger/handle/flush.h"
#include "ledger/handle/handle.h"
#include "ledger/handle/lookup.h"
#include "ledger/handle/statement.h"
#include "ledger/handle/transaction.h"

int ledger_look(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                const struct ledger_row **ret)
{
        struct cached_row *cached;
        int r = ledger_look_up(ledger, watch, key, uid, &cached);

        if (r < 0)
                return r;
        if (!cached->exists)
                return -ENOENT;
        *ret = &cached->row;
        return 0;
}

int ledger_get(struct ledger *ledger, const char *watch, const char *key, const char *uid,
               struct ledger_row *ret)
{
        const struct ledger_row *row;
        int r = ledger_look(ledger, watch, key, uid, &row);

        return r < 0 ? r : ledger_row_copy(row, ret);
}

static int replace_row(struct ledger *ledger, struct cached_row *cached, const struct ledger_row *row)
{
        int r = cached_keep_row(cached, row);

        if (r < 0)
                return r;
        due_cursor_note(&ledger->due, row->next_realtime);
        if (!cached->exists) /* a row that was removed before leaves no run behind */
                cached->has_run = cached->on_disk;
        cached->exists = true;
        cached->blank = false;
        return 0;
}

int ledger_put(struct ledger *ledger, const char *watch, const struct ledger_row *row)
{
        struct cached_row *cached;
        int r;

        assert(watch[0] && row->key[0]);
        assert(row->quarantined_until == 0 ||
               row->crashed_realtime > 0); /* an index finds the one by the other */
        r = ledger_look_up(ledger, watch, row->key, row->uid, &cached);
        if (r >= 0)
                r = replace_row(ledger, cached, row);
        return r < 0 ? r : ledger_changed(ledger, cached);
}

int ledger_owe(struct ledger *ledger, const char *watch, const char *key, const char *uid)
{
        struct cached_row *cached;
        int r;

        assert(watch[0] && key[0]);
        r = ledger_look_up(ledger, watch, key, uid, &cached);
        if (r < 0 || cached->exists)
                return r;
        r = replace_row(ledger, cached, &(struct ledger_row){0});
        if (r < 0)
                return r;
        cached->blank = true;
        r = ledger_changed(ledger, cached);
        return r < 0 ? r : 1;
}

int ledger_remove(struct ledger *ledger, const char *watch, const char *key, const char *uid)
{
        struct cached_row *cached;
        int r;

        assert(watch[0] && key[0]);
        r = ledger_look_up(ledger, watch, key, uid, &cached);
        if (r < 0 || !cached->exists)
                return r;
        cached->exists = cached->has_run = false;
        r = cached_keep_run(cached, &(struct ledger_run){0});
        return r < 0 ? r : ledger_changed(ledger, cached);
}

int ledger_visit(struct ledger *ledger, const char *watch, const char *key, const char *uid, size_t limit,
                 ledger_visit_t visit, void *userdata)
{
        sqlite3_stmt *statement;
        int r;

        assert(limit > 0);
        r = ledger_flush(ledger);
        if (r >= 0)
                r = ledger_bind(ledger, STATEMENT_PAGE, watch, key, uid, &statement);
        if (r < 0)
                return r;
        sqlite3_bind_int64(statement, 4, (sqlite3_int64)limit);
        return ledger_visit_page(ledger, statement, limit, visit, userdata);
}

int ledger_settling_names(struct ledger *ledger, const char *id)
{
        _cleanup_statement_ sqlite3_stmt *statement = NULL;
        int code, r = ledger_commit(ledger);

        if (r >= 0)
                r = ledger_prepare(
                        ledger,
                        "SELECT 1 FROM ledger WHERE settling <> '' AND instr(settling, ?1) > 0 LIMIT 1", id,
                        NULL, NULL, &statement);
        if (r < 0)
                return r;
        code = sqlite3_step(statement);
        return code == SQLITE_ROW ? 1 : ledger_errno(ledger->database, code);
}

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

/* These columns come after the answer whether the row is intact. */
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

        if (r >= 0 || r == -EBUSY)
                r = ledger_bind(ledger, STATEMENT_RUN, watch, key, uid, &statement);
        if (r < 0)
                return r;
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

int ledger_commit(struct ledger *ledger)
{
        return ledger_end(ledger, ledger_flush(ledger));
}

int ledger_try_commit(struct ledger *ledger)
{
        int r = ledger_try_flush(ledger);

        return r == -EBUSY && !ledger->in_transaction ? r : ledger_end(ledger, r);
}

int ledger_hold(struct ledger *ledger)
{
        int r = ledger_try_begin(ledger);

        return r == -EBUSY ? 0 : r;
}

int ledger_try_hold(struct ledger *ledger)
{
        int r = ledger_try_begin(ledger);

        return r < 0 ? r : ledger_try_flush(ledger);
}

#define WEIGHT_MAX 600

bool ledger_is_full(const struct ledger *ledger)
{
        return ledger->weight >= WEIGHT_MAX;
}

bool ledger_dirty(const struct ledger *ledger)
{
        return ledger->in_transaction || ledger->cache.dirty || ledger->history.first;
}

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
        struct due_visit due = {ledger, visit, userdata};
        sqlite3_stmt *statement;
        int r = ledger_try_flush(ledger);

        due_cursor_see_clock(&ledger->due, now);
        ledger->due.soonest_known = false;
        if (r < 0)
                return r == -EBUSY ? 0 : r; /* ledger_next_due() says when to come again */
        r = ledger_statement(ledger, STATEMENT_DUE, &statement);
        if (r < 0)
                return r;
        bind_due(ledger, statement);
        sqlite3_bind_int64(statement, 5, (sqlite3_int64)now);
        sqlite3_bind_int64(statement, 6, (sqlite3_int64)limit);
        return ledger_visit_page(ledger, statement, limit, visit_due, &due);
}

static int query_next_due(struct ledger *ledger, int64_t *ret)
{
        sqlite3_stmt *statement;
        int code, r = ledger_statement(ledger, STATEMENT_NEXT_DUE, &statement);

        if (r < 0)
                return r;
        bind_due(ledger, statement);
        code = sqlite3_step(statement);
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
                r = query_next_due(ledger, &due);
                ledger->due.soonest = (uint64_t)due;
                ledger->due.soonest_known = r >= 0;
        }
        if (r >= 0)
                *ret_realtime = ledger->due.soonest;
        return r;
}
