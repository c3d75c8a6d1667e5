/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading ahead. Where many rows are asked for, it is in the order of their keys: after a restart, a first
 * LIST, a change to all objects of a kind. To find a row costs more than to read the one behind it, and to
 * find that there is none costs as much. So a row is now and then read together with a few behind it; where
 * those are asked for next, more are read at once, for as long as that is so. And where there was none, it
 * is known up to which key there is none, until one is written.
 *
 * What must never happen: that the cache holds what the database does not. Nobody else writes it, and what
 * is in the cache already stays as it is.
 */
#include "ledger/handle/ahead.h"

#include <string.h>

#include "ledger/database/result.h"
#include "ledger/handle/handle.h"
#include "ledger/handle/statement.h"
#include "ledger/row/read.h"

#define TRY_EVERY 16 /* rows that were not in memory */
#define TRY_ROWS  4
#define ROWS      16

static int compare(const char *key, const char *uid, const char *other_key, const char *other_uid)
{
        int order = strcmp(key, other_key);

        return order != 0 ? order : strcmp(uid, other_uid);
}

/* ---- where there is none */

static void gap_forget(struct ledger_gap *gap)
{
        free(gap->watch);
        free(gap->key);
        free(gap->uid);
        free(gap->end_key);
        free(gap->end_uid);
        *gap = (struct ledger_gap){0};
}

/* Up to `end`; NULL: up to the end of the watch. Without memory for it nothing is known. */
static void gap_note(struct ledger_gap *gap, const struct cached_row *cached, const struct ledger_row *end)
{
        gap_forget(gap);
        gap->watch = strdup(cached->watch);
        gap->key = strdup(cached->row.key);
        gap->uid = strdup(cached->row.uid);
        gap->end_key = end ? strdup(end->key) : NULL;
        gap->end_uid = end ? strdup(end->uid) : NULL;
        if (!gap->watch || !gap->key || !gap->uid || (end && (!gap->end_key || !gap->end_uid)))
                gap_forget(gap);
}

static bool gap_has(const struct ledger_gap *gap, const struct cached_row *cached)
{
        return gap->watch && strcmp(gap->watch, cached->watch) == 0 &&
               compare(cached->row.key, cached->row.uid, gap->key, gap->uid) >= 0 &&
               (!gap->end_key || compare(cached->row.key, cached->row.uid, gap->end_key, gap->end_uid) < 0);
}

bool ahead_knows_of_none(struct ledger *ledger, const struct cached_row *cached)
{
        if (!gap_has(&ledger->ahead.gap, cached))
                return false;
        ledger->ahead.used++;
        return true;
}

void ahead_forget(struct ledger *ledger)
{
        gap_forget(&ledger->ahead.gap);
}

/* ---- rows */

void ahead_note_use(struct ledger *ledger, struct cached_row *cached)
{
        ledger->ahead.used += cached->ahead;
        cached->ahead = false;
}

/* At least half of what was read the last time, or that there is none, was asked for since. */
static bool was_of_use(const struct read_ahead *ahead)
{
        return ahead->used > 0 && 2 * ahead->used >= ahead->read;
}

/* To read now. */
static size_t row_count(struct read_ahead *ahead)
{
        bool goes_on = was_of_use(ahead);

        ahead->used = 0;
        ahead->read = 0;
        if (goes_on)
                return ROWS;
        if (++ahead->misses < TRY_EVERY)
                return 1;
        ahead->misses = 0;
        return TRY_ROWS;
}

static int take_row(struct cached_row *cached, sqlite3_stmt *statement)
{
        struct ledger_row row;
        int r = ledger_borrow_state(statement, &row, &cached->checksum);

        if (r >= 0)
                r = cached_keep_row(cached, &row);
        cached->exists = cached->on_disk = true;
        cached->index = row_index(&cached->row);
        return r;
}

/* Nobody has asked for it: what is wrong with it is told to whoever does. */
static bool keep_ahead(struct ledger *ledger, const char *watch, sqlite3_stmt *statement)
{
        const char *key = ledger_column(statement, 1), *uid = ledger_column(statement, 2);
        struct cached_row *cached;

        if (cache_is_full(&ledger->cache))
                return false;
        if (cache_find(&ledger->cache, watch, key, uid))
                return true;
        cached = cache_add(&ledger->cache, watch, key, uid);
        if (!cached)
                return false;
        if (take_row(cached, statement) < 0) {
                cache_forget(&ledger->cache, cached);
                return false;
        }
        cached->ahead = true;
        ledger->ahead.read++;
        return true;
}

/* The first row that is not before the one that is asked for: it, or the end of where there is none. */
static int take_first(struct ledger *ledger, struct cached_row *cached, sqlite3_stmt *statement)
{
        struct ledger_row row;
        int r;

        if (compare(ledger_column(statement, 1), ledger_column(statement, 2), cached->row.key,
                    cached->row.uid) == 0)
                return take_row(cached, statement);
        r = ledger_borrow_row(statement, &row);
        if (r >= 0)
                gap_note(&ledger->ahead.gap, cached, &row);
        return r;
}

int ahead_load(struct ledger *ledger, struct cached_row *cached)
{
        sqlite3_stmt *statement =
                ledger_bind(ledger, STATEMENT_GET, cached->watch, cached->row.key, cached->row.uid);
        int code, r;

        sqlite3_bind_int64(statement, 4, (sqlite3_int64)row_count(&ledger->ahead));
        code = sqlite3_step(statement);
        r = ledger_errno(ledger->database, code);
        if (code == SQLITE_ROW)
                r = take_first(ledger, cached, statement);
        else if (r >= 0)
                gap_note(&ledger->ahead.gap, cached, NULL);
        if (r >= 0 && cached->exists)
                while (sqlite3_step(statement) == SQLITE_ROW && keep_ahead(ledger, cached->watch, statement))
                        ;
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);
        return r;
}
