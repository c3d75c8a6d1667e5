/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the ledger: there and back. What is changed waits in the cache (ledger-cache.c) and goes to the
 * database with ledger_commit(), or before a question that a single row does not answer (ledger_flush).
 */
#include <errno.h>
#include <string.h>

#include "supervisor/ledger-internal.h"

#define COLUMN_INTACT   23
#define COLUMN_CHECKSUM 24
#define DIRTY_MAX       1000 /* rows, in one transaction */

const char *ledger_column(sqlite3_stmt *statement, int column)
{
        const unsigned char *text = sqlite3_column_text(statement, column);

        return text ? (const char *)text : "";
}

int ledger_borrow_row(sqlite3_stmt *statement, struct ledger_row *ret)
{
        if (sqlite3_column_int(statement, COLUMN_INTACT) != 1)
                return -EBADMSG;
        *ret = (struct ledger_row){
                .key = (char *)ledger_column(statement, 1),
                .uid = (char *)ledger_column(statement, 2),
                .fingerprint = (uint64_t)sqlite3_column_int64(statement, 3),
                .failed_fingerprint = (uint64_t)sqlite3_column_int64(statement, 4),
                .attempts = (uint64_t)sqlite3_column_int64(statement, 5),
                .next_realtime = (uint64_t)sqlite3_column_int64(statement, 6),
                .next_reason = (char *)ledger_column(statement, 7),
                .last_error = (char *)ledger_column(statement, 8),
                .first_error = (char *)ledger_column(statement, 9),
                .handled_realtime = (uint64_t)sqlite3_column_int64(statement, 10),
                .permanent = sqlite3_column_int(statement, 11) != 0,
                .deleting = sqlite3_column_int(statement, 12) != 0,
                .throttled = (uint64_t)sqlite3_column_int64(statement, 13),
                .crashes = (uint64_t)sqlite3_column_int64(statement, 14),
                .crashed_realtime = (uint64_t)sqlite3_column_int64(statement, 15),
                .quarantined_until = (uint64_t)sqlite3_column_int64(statement, 16),
                .settling = (char *)ledger_column(statement, 17),
                .written_realtime = (uint64_t)sqlite3_column_int64(statement, 18),
                .written_version = (char *)ledger_column(statement, 19),
                .known_version = (uint64_t)sqlite3_column_int64(statement, 20),
                .unselected = sqlite3_column_int(statement, 21) != 0,
                .related = (uint64_t)sqlite3_column_int64(statement, 22),
        };
        return 0;
}

int ledger_copy_row(const struct ledger_row *from, struct ledger_row *ret)
{
        struct ledger_row row = *from;

        row.key = strdup(from->key);
        row.uid = strdup(from->uid);
        row.next_reason = strdup(from->next_reason);
        row.last_error = strdup(from->last_error);
        row.first_error = strdup(from->first_error);
        row.settling = strdup(from->settling);
        row.written_version = strdup(from->written_version);
        if (!row.key || !row.uid || !row.next_reason || !row.last_error || !row.first_error ||
            !row.settling || !row.written_version) {
                ledger_row_done(&row);
                return -ENOMEM;
        }
        *ret = row;
        return 0;
}

static struct row_index row_index(const struct ledger_row *row)
{
        return (struct row_index){
                .next_realtime = row->next_realtime,
                .quarantined_until = row->quarantined_until,
                .throttled = row->throttled,
                .attempts = row->attempts,
                .permanent = row->permanent,
        };
}

enum change_kind ledger_row_kind(const struct ledger_row *row)
{
        return row->deleting ? CHANGE_DELETED : row->unselected ? CHANGE_UNSELECTED : CHANGE_UPDATED;
}

bool ledger_row_is_suspect(const struct ledger_row *row)
{
        return row->crashes > 0 || row->crashed_realtime > 0;
}

void ledger_row_done(struct ledger_row *row)
{
        free(row->key);
        free(row->uid);
        free(row->next_reason);
        free(row->last_error);
        free(row->first_error);
        free(row->settling);
        free(row->written_version);
        *row = (struct ledger_row){0};
}

/* ---- reading and changing */

static int load(struct ledger *ledger, struct cached_row *cached)
{
        sqlite3_stmt *statement =
                ledger_bind(ledger, STATEMENT_GET, cached->watch, cached->row.key, cached->row.uid);
        int code = sqlite3_step(statement), r = 0;

        if (code == SQLITE_ROW) {
                struct ledger_row row;

                r = ledger_borrow_row(statement, &row);
                if (r >= 0)
                        r = cached_keep_row(cached, &row);
                cached->exists = cached->on_disk = true;
                cached->index = row_index(&cached->row);
                cached->checksum = (uint64_t)sqlite3_column_int64(statement, COLUMN_CHECKSUM);
        } else if (code != SQLITE_DONE) {
                r = ledger_errno(ledger->database, code);
        }
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);
        return r;
}

/* To make room: what cannot be written yet stays in the cache, which then has more than it should. */
static int flush_if_possible(struct ledger *ledger)
{
        int r = ledger_try_flush(ledger);

        return r == -EBUSY ? 0 : r;
}

/* The row as it is now, or as one that does not exist. */
static int look_up(struct ledger *ledger, const char *watch, const char *key, const char *uid,
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
                if (r >= 0)
                        r = load(ledger, cached);
                if (r < 0 && cached)
                        cache_forget(&ledger->cache, cached);
        }
        if (r >= 0)
                *ret = cached;
        return r;
}

int ledger_look(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                const struct ledger_row **ret)
{
        struct cached_row *cached;
        int r = look_up(ledger, watch, key, uid, &cached);

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

        return r < 0 ? r : ledger_copy_row(row, ret);
}

/* So that whoever sets a timer with each outcome need not ask the database. */
static void note_due(struct due_cursor *cursor, uint64_t next_realtime)
{
        if (next_realtime == 0 || next_realtime < cursor->realtime)
                return;
        if (next_realtime == cursor->realtime) /* behind it or not: that is up to the names */
                cursor->soonest_known = false;
        else if (cursor->soonest == 0 || next_realtime < cursor->soonest)
                cursor->soonest = next_realtime;
}

static int changed(struct ledger *ledger, struct cached_row *cached)
{
        cache_mark_dirty(&ledger->cache, cached);
        return ledger->cache.dirty_count > DIRTY_MAX ? flush_if_possible(ledger) : 0;
}

static int replace(struct ledger *ledger, struct cached_row *cached, const struct ledger_row *row)
{
        int r = cached_keep_row(cached, row);

        if (r < 0)
                return r;
        note_due(&ledger->due, row->next_realtime);
        if (!cached->exists) /* one that was there before it was removed leaves nothing behind */
                cached->has_run = cached->on_disk;
        cached->exists = true;
        cached->blank = false;
        return 0;
}

int ledger_put(struct ledger *ledger, const char *watch, const struct ledger_row *row)
{
        struct cached_row *cached;
        int r = look_up(ledger, watch, row->key, row->uid, &cached);

        if (r >= 0)
                r = replace(ledger, cached, row);
        return r < 0 ? r : changed(ledger, cached);
}

int ledger_owe(struct ledger *ledger, const char *watch, const char *key, const char *uid)
{
        struct cached_row *cached;
        int r = look_up(ledger, watch, key, uid, &cached);

        if (r < 0 || cached->exists)
                return r;
        r = replace(ledger, cached, &(struct ledger_row){0});
        if (r < 0)
                return r;
        cached->blank = true;
        r = changed(ledger, cached);
        return r < 0 ? r : 1;
}

int ledger_remove(struct ledger *ledger, const char *watch, const char *key, const char *uid)
{
        struct cached_row *cached;
        int r = look_up(ledger, watch, key, uid, &cached);

        if (r < 0 || !cached->exists)
                return r;
        cached->exists = cached->has_run = false;
        r = cached_keep_run(cached, &(struct ledger_run){0});
        return r < 0 ? r : changed(ledger, cached);
}

int ledger_run_put(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                   const struct ledger_run *run)
{
        struct cached_row *cached;
        int r = look_up(ledger, watch, key, uid, &cached);

        if (r < 0 || !cached->exists)
                return r;
        r = cached_keep_run(cached, run);
        if (r < 0)
                return r;
        cached->has_run = true;
        return changed(ledger, cached);
}

/* ---- to the database */

static void bind_run(sqlite3_stmt *statement, int first, const struct ledger_run *run)
{
        sqlite3_bind_int64(statement, first, (sqlite3_int64)run->ended_realtime);
        sqlite3_bind_int64(statement, first + 1, (sqlite3_int64)run->duration_usec);
        sqlite3_bind_text(statement, first + 2, run->action, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, first + 3, run->reason, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, first + 4, run->result, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, first + 5, run->version, -1, SQLITE_STATIC);
}

/* The same numbers in each statement that writes a row. */
static void bind_row(sqlite3_stmt *statement, const struct ledger_row *row)
{
        sqlite3_bind_int64(statement, 4, (sqlite3_int64)row->fingerprint);
        sqlite3_bind_int64(statement, 5, (sqlite3_int64)row->failed_fingerprint);
        sqlite3_bind_int64(statement, 6, (sqlite3_int64)row->attempts);
        sqlite3_bind_int64(statement, 7, (sqlite3_int64)row->next_realtime);
        sqlite3_bind_text(statement, 8, row->next_reason, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 9, row->last_error, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 10, row->first_error, -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 11, (sqlite3_int64)row->handled_realtime);
        sqlite3_bind_int(statement, 12, row->permanent);
        sqlite3_bind_int(statement, 13, row->deleting);
        sqlite3_bind_int64(statement, 14, (sqlite3_int64)row->throttled);
        sqlite3_bind_int64(statement, 15, (sqlite3_int64)row->crashes);
        sqlite3_bind_int64(statement, 16, (sqlite3_int64)row->crashed_realtime);
        sqlite3_bind_int64(statement, 17, (sqlite3_int64)row->quarantined_until);
        sqlite3_bind_text(statement, 18, row->settling, -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 19, (sqlite3_int64)row->written_realtime);
        sqlite3_bind_text(statement, 20, row->written_version, -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 21, (sqlite3_int64)row->known_version);
        sqlite3_bind_int(statement, 22, row->unselected);
        sqlite3_bind_int64(statement, 23, (sqlite3_int64)row->related);
}

static bool is_same_index(const struct row_index *a, const struct row_index *b)
{
        return a->next_realtime == b->next_realtime && a->quarantined_until == b->quarantined_until &&
               a->throttled == b->throttled && a->attempts == b->attempts && a->permanent == b->permanent;
}

/* A new row has a run in any case, if only an empty one; else by whether it goes with the row. */
static enum ledger_statement statement_for(const struct cached_row *cached, const struct row_index *index)
{
        if (!cached->on_disk)
                return cached->blank && !cached->has_run ? STATEMENT_OWE : STATEMENT_INSERT;
        if (is_same_index(&cached->index, index))
                return cached->has_run ? STATEMENT_UPDATE_RUN : STATEMENT_UPDATE;
        return cached->has_run ? STATEMENT_MOVE_RUN : STATEMENT_MOVE;
}

static const struct ledger_run no_run = {.action = "", .reason = "", .result = "", .version = ""};

static int write_row(struct ledger *ledger, struct cached_row *cached)
{
        struct row_index index = row_index(&cached->row);
        enum ledger_statement which = statement_for(cached, &index);
        sqlite3_stmt *statement =
                ledger_bind(ledger, which, cached->watch, cached->row.key, cached->row.uid);
        uint64_t checksum = 0;
        int r;

        if (which != STATEMENT_OWE)
                bind_row(statement, &cached->row);
        if (cached->has_run)
                bind_run(statement, 24, &cached->run);
        else if (which == STATEMENT_INSERT)
                bind_run(statement, 24, &no_run);
        r = ledger_write_entry(ledger, which, &checksum);
        if (r < 0)
                return r;
        ledger_sums_note(ledger, SUM_ROWS, cached->on_disk ? &cached->checksum : NULL, &checksum);
        cached->checksum = checksum;
        cached->on_disk = true;
        cached->has_run = false;
        cached->index = index;
        return 0;
}

static int write_removal(struct ledger *ledger, struct cached_row *cached)
{
        int r;

        if (!cached->on_disk)
                return 0;
        ledger_bind(ledger, STATEMENT_REMOVE, cached->watch, cached->row.key, cached->row.uid);
        r = ledger_run_once(ledger, STATEMENT_REMOVE);
        if (r >= 0 && sqlite3_changes(ledger->database) != 1)
                r = -EBADMSG;
        if (r < 0)
                return r;
        ledger_sums_note(ledger, SUM_ROWS, &cached->checksum, NULL);
        cached->on_disk = false;
        return 0;
}

static int write_dirty(struct ledger *ledger)
{
        struct row_cache *cache = &ledger->cache;
        int r = 0;

        while (r >= 0 && cache->dirty) {
                struct cached_row *cached = cache->dirty;

                r = cached->exists ? write_row(ledger, cached) : write_removal(ledger, cached);
                if (r < 0)
                        break;
                cached->dirty = false;
                cache->dirty = cached->next_dirty;
                cache->dirty_count--;
        }
        return r;
}

int ledger_flush(struct ledger *ledger)
{
        int r = ledger->cache.dirty ? ledger_begin(ledger) : 0;

        return r < 0 ? r : write_dirty(ledger);
}

int ledger_try_flush(struct ledger *ledger)
{
        int r = ledger->cache.dirty ? ledger_try_begin(ledger) : 0;

        return r < 0 ? r : write_dirty(ledger);
}
