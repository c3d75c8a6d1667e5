/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the ledger: there and back. What is changed waits in the cache (lib/ledger/cache.c) and goes to
 * the database with ledger_commit(), or before a question that a single row does not answer (ledger_flush).
 */
#include <errno.h>
#include <string.h>

#include "ledger/internal.h"

#define MOVE_WEIGHT 12  /* of a row whose places in the indexes change, against one that stays: pages */
#define DIRTY_MAX   100 /* rows that are written at once: what is more would be a long turn of the loop */

const char *ledger_column(sqlite3_stmt *statement, int column)
{
        const unsigned char *text = sqlite3_column_text(statement, column);

        return text ? (const char *)text : "";
}

int ledger_all_was_read(sqlite3_stmt *statement)
{
        return sqlite3_errcode(sqlite3_db_handle(statement)) == SQLITE_NOMEM ? -ENOMEM : 0;
}

/* Most texts are empty, and SQLite copies each that it is asked for, to end with a zero. */
static char *text_of(sqlite3_stmt *statement, const struct ledger_values *values, int column)
{
        return (char *)(uintptr_t)(values->size[column] > 0 ? ledger_column(statement, column) : "");
}

#define READ_NUMBER(column)                             (uint64_t) values.number[VALUE_##column]
#define READ_FLAG(column)                               values.number[VALUE_##column] != 0
#define READ_TEXT(column)                               text_of(statement, &values, VALUE_##column)
#define READ_LONG(column)                               READ_TEXT(column)
#define READ(kind, index, number, column, field, since) .field = READ_##kind(column),

/* All but whose it is. */
static int borrow_state(sqlite3_stmt *statement, struct ledger_row *ret, uint64_t *ret_checksum)
{
        struct ledger_values values;

        if (!ledger_read_values(statement, &values))
                return -EBADMSG;
        *ret = (struct ledger_row){LEDGER_STATE(READ)};
        *ret_checksum = values.checksum;
        return ledger_all_was_read(statement);
}

int ledger_borrow_row(sqlite3_stmt *statement, struct ledger_row *ret)
{
        uint64_t checksum;
        int r = borrow_state(statement, ret, &checksum);

        if (r < 0)
                return r;
        ret->key = (char *)ledger_column(statement, VALUE_key);
        ret->uid = (char *)ledger_column(statement, VALUE_uid);
        return ledger_all_was_read(statement);
}

/* For each column: its text is copied from `from`, NULL as ""; it is freed. */
#define COPY_NUMBER(field)
#define COPY_FLAG(field)
#define COPY_TEXT(field)                                                                                    \
        row.field = strdup(from->field ? from->field : "");                                                 \
        is_complete = is_complete && row.field;
#define COPY_LONG(field)                                COPY_TEXT(field)
#define COPY(kind, index, number, column, field, since) COPY_##kind(field)

#define FREE_NUMBER(field)
#define FREE_FLAG(field)
#define FREE_TEXT(field)                                free(row->field);
#define FREE_LONG(field)                                free(row->field);
#define FREE(kind, index, number, column, field, since) FREE_##kind(field)

int ledger_copy_row(const struct ledger_row *from, struct ledger_row *ret)
{
        struct ledger_row row = *from;
        bool is_complete = true;

        COPY_TEXT(key)
        COPY_TEXT(uid)
        LEDGER_STATE(COPY)
        if (!is_complete) {
                ledger_row_done(&row);
                return -ENOMEM;
        }
        *ret = row;
        return 0;
}

#define INDEX_OF_PLAIN(field)
#define INDEX_OF_INDEXED(field)                             .field = row->field,
#define INDEX_OF(kind, index, number, column, field, since) INDEX_OF_##index(field)

int ledger_row_new(const char *key, const char *uid, struct ledger_row *ret)
{
        const struct ledger_row blank = {.key = (char *)(uintptr_t)key, .uid = (char *)(uintptr_t)uid};

        return ledger_copy_row(&blank, ret);
}

static struct row_index row_index(const struct ledger_row *row)
{
        return (struct row_index){LEDGER_STATE(INDEX_OF)};
}

enum change_kind ledger_row_kind(const struct ledger_row *row)
{
        return row->deleting ? CHANGE_DELETED : row->unselected ? CHANGE_UNSELECTED : CHANGE_UPDATED;
}

void ledger_row_unknown(struct ledger_row *row)
{
        row->fingerprint = row->known_version = 0;
        if (!row->permanent)
                return;
        row->permanent = false;
        row->failed_fingerprint = row->attempts = row->refused = 0;
}

bool ledger_row_is_suspect(const struct ledger_row *row)
{
        return row->crashes > 0 || row->crashed_realtime > 0;
}

void ledger_row_done(struct ledger_row *row)
{
        free(row->key);
        free(row->uid);
        LEDGER_STATE(FREE)
        *row = (struct ledger_row){0};
}

/* ---- reading and changing */

int cached_take(struct cached_row *cached, sqlite3_stmt *statement)
{
        struct ledger_row row;
        int r = borrow_state(statement, &row, &cached->checksum);

        if (r >= 0)
                r = cached_keep_row(cached, &row);
        cached->exists = cached->on_disk = true;
        cached->index = row_index(&cached->row);
        return r;
}

static int load(struct ledger *ledger, struct cached_row *cached)
{
        return ahead_knows_of_none(ledger, cached) ? 0 : ahead_load(ledger, cached);
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
        } else {
                ahead_note_use(ledger, cached);
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

/* Values in the order of the columns, and their sum. */
struct binding {
        sqlite3_stmt *statement;
        int last; /* number of the last one */
        uint64_t sum;
};

static void bind_number(struct binding *binding, uint64_t number)
{
        binding->sum = ledger_sum_number(binding->sum, (int64_t)number);
        sqlite3_bind_int64(binding->statement, ++binding->last, (sqlite3_int64)number);
}

static void bind_text(struct binding *binding, const char *text)
{
        size_t size = strlen(text);

        binding->sum = ledger_sum_text(binding->sum, text, size);
        sqlite3_bind_text64(binding->statement, ++binding->last, text, size, SQLITE_STATIC, SQLITE_UTF8);
}

static void bind_names(struct binding *binding, const struct cached_row *cached)
{
        bind_text(binding, cached->watch);
        bind_text(binding, cached->row.key);
        bind_text(binding, cached->row.uid);
}

#define BIND_NUMBER(value)                                    bind_number(binding, value);
#define BIND_FLAG(value)                                      bind_number(binding, value);
#define BIND_TEXT(value)                                      bind_text(binding, value);
#define BIND_LONG(value)                                      bind_text(binding, value);
#define BIND_STATE(kind, index, number, column, field, since) BIND_##kind(row->field)
#define BIND_RUN(kind, index, number, column, field, since)   BIND_##kind(run->field)

static void bind_state(struct binding *binding, const struct ledger_row *row)
{
        LEDGER_STATE(BIND_STATE)
}

static void bind_run(struct binding *binding, const struct ledger_run *run)
{
        LEDGER_RUN(BIND_RUN)
}

#define SAME_PLAIN(field)
#define SAME_INDEXED(field)                             &&a->field == b->field
#define SAME(kind, index, number, column, field, since) SAME_##index(field)

static bool is_same_index(const struct row_index *a, const struct row_index *b)
{
        return true LEDGER_STATE(SAME);
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

/* Its sum: of what is bound, where that is all of it; else of what the statement keeps, too (last_sum). */
static int write_statement(struct ledger *ledger, enum ledger_statement which, struct cached_row *cached,
                           uint64_t *ret_checksum)
{
        struct binding binding = {.statement = ledger->statement[which], .sum = ROW_VALUES};
        int r;

        bind_names(&binding, cached);
        if (which != STATEMENT_OWE)
                bind_state(&binding, &cached->row);
        if (cached->has_run || which == STATEMENT_INSERT) {
                bind_run(&binding, cached->has_run ? &cached->run : &no_run);
                sqlite3_bind_int64(binding.statement, CHECKSUM_PARAMETER, (sqlite3_int64)binding.sum);
                ledger->last_sum = binding.sum;
        }
        r = ledger_write_entry(ledger, which);
        *ret_checksum = ledger->last_sum;
        return r;
}

static int write_row(struct ledger *ledger, struct cached_row *cached)
{
        struct row_index index = row_index(&cached->row);
        uint64_t checksum;
        int r = write_statement(ledger, statement_for(cached, &index), cached, &checksum);

        if (r < 0)
                return r;
        ledger_sums_note(ledger, SUM_ROWS, cached->on_disk ? &cached->checksum : NULL, &checksum);
        ledger->weight += cached->on_disk && is_same_index(&cached->index, &index) ? 1 : MOVE_WEIGHT;
        ledger_tally_note(ledger, cached->watch, cached->on_disk ? &cached->index : NULL, &index);
        if (!cached->on_disk)
                ahead_forget(ledger);
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
        ledger_tally_note(ledger, cached->watch, &cached->index, NULL);
        ledger->weight += MOVE_WEIGHT;
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
