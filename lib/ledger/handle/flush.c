/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/handle/flush.h"

#include <string.h>

#include "ledger/database/sums.h"
#include "ledger/handle/history-entries.h"
#include "ledger/handle/statement.h"
#include "ledger/handle/tally.h"
#include "ledger/handle/transaction.h"

#define MOVE_WEIGHT 12 /* of a row whose places in the indexes change, against one that stays: pages */

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

#define BIND_NUMBER(value)                             bind_number(binding, value);
#define BIND_FLAG(value)                               bind_number(binding, value);
#define BIND_TEXT(value)                               bind_text(binding, value);
#define BIND_LONG(value)                               bind_text(binding, value);
#define BIND_REASON(value)                             bind_text(binding, run_reason_name(value));
#define BIND_STATE(kind, index, number, column, field) BIND_##kind(row->field)
#define BIND_RUN(kind, index, number, column, field)   BIND_##kind(run->field)

static void bind_state(struct binding *binding, const struct ledger_row *row)
{
        LEDGER_STATE(BIND_STATE)
}

static void bind_run(struct binding *binding, const struct ledger_run *run)
{
        LEDGER_RUN(BIND_RUN)
}

/* A new row has a run in any case, if only an empty one; else by whether it goes with the row. */
static enum ledger_statement statement_for(const struct cached_row *cached, const struct row_index *index)
{
        if (!cached->on_disk)
                return cached->blank && !cached->has_run ? STATEMENT_OWE : STATEMENT_INSERT;
        if (row_index_is_same(&cached->index, index))
                return cached->has_run ? STATEMENT_UPDATE_RUN : STATEMENT_UPDATE;
        return cached->has_run ? STATEMENT_MOVE_RUN : STATEMENT_MOVE;
}

static const struct ledger_run no_run = {.action = "", .reason = "", .result = "", .version = ""};

/* Its sum: of what is bound, where that is all of it; else of what the statement keeps, too (last_sum). */
static int write_statement(struct ledger *ledger, enum ledger_statement which, struct cached_row *cached,
                           uint64_t *ret_checksum)
{
        struct binding binding = {.sum = ROW_VALUES};
        int r = ledger_statement(ledger, which, &binding.statement);

        if (r < 0)
                return r;
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

static int flush_row(struct ledger *ledger, struct cached_row *cached)
{
        struct row_index index = row_index(&cached->row);
        uint64_t checksum;
        int r = write_statement(ledger, statement_for(cached, &index), cached, &checksum);

        if (r < 0)
                return r;
        ledger_sums_note(ledger, SUM_ROWS, cached->on_disk ? &cached->checksum : NULL, &checksum);
        ledger->weight += cached->on_disk && row_index_is_same(&cached->index, &index) ? 1 : MOVE_WEIGHT;
        ledger_tally_note(ledger, cached->watch, cached->on_disk ? &cached->index : NULL, &index);
        cached->checksum = checksum;
        cached->on_disk = true;
        cached->has_run = false;
        cached->index = index;
        return 0;
}

static int write_removal(struct ledger *ledger, struct cached_row *cached)
{
        sqlite3_stmt *statement;
        int r;

        if (!cached->on_disk)
                return 0;
        r = ledger_bind(ledger, STATEMENT_REMOVE, cached->watch, cached->row.key, cached->row.uid,
                        &statement);
        if (r >= 0)
                r = ledger_write_entry(ledger, STATEMENT_REMOVE);
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

                r = cached->exists ? flush_row(ledger, cached) : write_removal(ledger, cached);
                if (r < 0)
                        break;
                cached->dirty = false;
                cache->dirty = cached->next_dirty;
                cache->dirty_count--;
        }
        return r;
}

static bool has_changes(const struct ledger *ledger)
{
        return ledger->cache.dirty || ledger->history.first;
}

static int write_changes(struct ledger *ledger)
{
        int r = write_dirty(ledger);

        return r < 0 ? r : ledger_history_flush(ledger);
}

int ledger_flush(struct ledger *ledger)
{
        int r = has_changes(ledger) ? ledger_begin(ledger) : 0;

        return r < 0 ? r : write_changes(ledger);
}

int ledger_try_flush(struct ledger *ledger)
{
        int r = has_changes(ledger) ? ledger_try_begin(ledger) : 0;

        return r < 0 ? r : write_changes(ledger);
}
