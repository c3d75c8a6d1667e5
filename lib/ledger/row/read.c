/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/row/read.h"

#include <errno.h>

#include "ledger/database/checksum.h"
#include "ledger/database/result.h"
#include "ledger/database/sql.h"

/* Most texts are empty, and SQLite copies each that it is asked for, to end with a zero. */
static char *column_text(sqlite3_stmt *statement, const struct ledger_values *values, int column)
{
        return (char *)(uintptr_t)(values->size[column] > 0 ? ledger_column(statement, column) : "");
}

static enum run_reason reason_of(const char *name)
{
        enum run_reason reason;

        return run_reason_parse(name, &reason) ? reason : RUN_RETRY;
}

#define READ_NUMBER(column)                      (uint64_t) values.number[VALUE_##column]
#define READ_FLAG(column)                        values.number[VALUE_##column] != 0
#define READ_TEXT(column)                        column_text(statement, &values, VALUE_##column)
#define READ_LONG(column)                        READ_TEXT(column)
#define READ_REASON(column)                      reason_of(READ_TEXT(column))
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
