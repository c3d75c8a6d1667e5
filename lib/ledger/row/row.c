/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/row/row.h"

#include <errno.h>
#include <string.h>

#include "ledger/database/result.h"
#include "ledger/database/sql.h"
#include "ledger/database/sums.h"

/* For each text: it is copied from `from`, NULL as ""; it is freed. */
#define COPY_TEXT(field)                                                                                    \
        row.field = strdup(from->field ? from->field : "");                                                 \
        is_complete = is_complete && row.field;
#define COPY(kind, index, number, column, field) IF_TEXT_##kind(COPY_TEXT(field))
#define FREE(kind, index, number, column, field) IF_TEXT_##kind(free(row->field);)

int ledger_row_copy(const struct ledger_row *from, struct ledger_row *ret)
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

int ledger_row_new(const char *key, const char *uid, struct ledger_row *ret)
{
        const struct ledger_row blank = {.key = (char *)(uintptr_t)key, .uid = (char *)(uintptr_t)uid};

        return ledger_row_copy(&blank, ret);
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

bool ledger_row_is_hearsay(const struct ledger_row *row)
{
        return row->failed_fingerprint == FINGERPRINT_HEARSAY;
}

void ledger_row_done(struct ledger_row *row)
{
        free(row->key);
        free(row->uid);
        LEDGER_STATE(FREE)
        *row = (struct ledger_row){0};
}

#define INDEX_OF(kind, index, number, column, field) IF_INDEXED_##index(.field = row->field, )
#define SAME(kind, index, number, column, field)     IF_INDEXED_##index(&&a->field == b->field)

struct row_index row_index(const struct ledger_row *row)
{
        return (struct row_index){LEDGER_STATE(INDEX_OF)};
}

bool row_index_is_same(const struct row_index *a, const struct row_index *b)
{
        return true LEDGER_STATE(SAME);
}

/* Most texts are empty, and SQLite copies each that it is asked for, to end with a zero. */
static char *column_text(sqlite3_stmt *statement, const struct ledger_values *values, int column)
{
        return (char *)(uintptr_t)(values->size[column] > 0 ? ledger_column(statement, column) : "");
}

static enum run_reason stored_reason(const char *name)
{
        enum run_reason reason;

        return run_reason_parse(name, &reason) ? reason : RUN_RETRY;
}

#define READ_NUMBER(column)                      (uint64_t) values.number[VALUE_##column]
#define READ_FLAG(column)                        values.number[VALUE_##column] != 0
#define READ_TEXT(column)                        column_text(statement, &values, VALUE_##column)
#define READ_LONG(column)                        READ_TEXT(column)
#define READ_REASON(column)                      stored_reason(READ_TEXT(column))
#define READ(kind, index, number, column, field) .field = READ_##kind(column),

int ledger_borrow_state(sqlite3_stmt *statement, struct ledger_row *ret, uint64_t *ret_checksum)
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
        int r = ledger_borrow_state(statement, ret, &checksum);

        if (r < 0)
                return r;
        ret->key = (char *)ledger_column(statement, VALUE_key);
        ret->uid = (char *)ledger_column(statement, VALUE_uid);
        return ledger_all_was_read(statement);
}
