/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where many rows are asked for, it is in the order of their keys: after a restart, a first LIST, a change to all
 * objects of a kind. To find a row costs more than to read the one after it, and to find that there is none
 * costs as much. So several rows are read at once when the one is asked for that follows those that were read
 * last; and it is known that there is no row between two that follow each other.
 */
#include "ledger/handle/lookup.h"

#include <errno.h>
#include <string.h>

#include "ledger/database/result.h"
#include "ledger/handle/flush.h"
#include "ledger/handle/handle.h"
#include "ledger/handle/statement.h"
#include "ledger/row/row.h"

#define DIRTY_MAX 100 /* rows that are written at once; more of them would make a turn of the loop long */
#define ROWS      16  /* that are read at once */

static int take_columns(struct cached_row *cached, sqlite3_stmt *statement)
{
        struct ledger_row row;
        int r = ledger_borrow_state(statement, &row, &cached->checksum);

        if (r >= 0)
                r = cached_keep_row(cached, &row);
        cached->exists = cached->on_disk = true;
        cached->index = row_index(&cached->row);
        return r;
}

/* This row was not asked for yet: an error in it is reported when it is. */
static bool keep_ahead(struct ledger *ledger, const char *watch, sqlite3_stmt *statement)
{
        const char *key = ledger_column(statement, 1), *uid = ledger_column(statement, 2);
        struct cached_row *cached = cache_find(&ledger->cache, watch, key, uid);
        bool is_new = !cached && !cache_is_full(&ledger->cache);

        if (is_new)
                cached = cache_add(&ledger->cache, watch, key, uid);
        if (cached && is_new && take_columns(cached, statement) < 0) {
                cache_forget(&ledger->cache, cached);
                cached = NULL;
        }
        return cached != NULL;
}

/* Reads the row, or finds that there is none; and reads the following rows if they are in demand. */
static int load_cached(struct ledger *ledger, struct cached_row *asked)
{
        const char *watch = asked->watch, *key = asked->row.key, *uid = asked->row.uid;
        size_t rows = cache_is_next(&ledger->cache, asked) ? ROWS : 1;
        sqlite3_stmt *statement;
        int code, r = ledger_bind(ledger, STATEMENT_GET, watch, key, uid, &statement);

        if (r < 0)
                return r;
        sqlite3_bind_int64(statement, 4, (sqlite3_int64)rows + 1);
        code = sqlite3_step(statement);
        r = ledger_errno(ledger->database, code);
        if (code == SQLITE_ROW && strcmp(ledger_column(statement, 1), key) == 0 &&
            strcmp(ledger_column(statement, 2), uid) == 0) {
                r = take_columns(asked, statement);
                while (r >= 0 && (code = sqlite3_step(statement)) == SQLITE_ROW && --rows > 0 &&
                       keep_ahead(ledger, watch, statement))
                        ;
        }
        if (r >= 0 && code == SQLITE_ROW)
                cache_know(&ledger->cache, asked, ledger_column(statement, 1), ledger_column(statement, 2));
        else if (code == SQLITE_DONE)
                cache_know(&ledger->cache, asked, NULL, NULL);
        ledger_reset(statement);
        return r;
}

/* Makes room. Rows that cannot be written yet stay in the cache, which is larger than CACHE_ROWS then. */
static int flush_if_possible(struct ledger *ledger)
{
        int r = ledger_try_flush(ledger);

        return r == -EBUSY ? 0 : r;
}

int ledger_look_up(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                   struct cached_row **ret)
{
        struct cached_row *cached = cache_find(&ledger->cache, watch, key, uid);
        int r = 0;

        if (!cached) {
                if (cache_is_full(&ledger->cache)) {
                        r = flush_if_possible(ledger);
                        cache_make_room(&ledger->cache);
                }
                if (r >= 0 && !(cached = cache_add(&ledger->cache, watch, key, uid)))
                        r = -ENOMEM;
                if (r >= 0 && !cache_knows_of_none(&ledger->cache, cached))
                        r = load_cached(ledger, cached);
                if (r < 0 && cached)
                        cache_forget(&ledger->cache, cached);
        }
        if (r >= 0)
                *ret = cached;
        return r;
}

int ledger_changed(struct ledger *ledger, struct cached_row *cached)
{
        cache_mark_dirty(&ledger->cache, cached);
        return ledger->cache.dirty_count > DIRTY_MAX ? flush_if_possible(ledger) : 0;
}
