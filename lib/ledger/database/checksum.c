/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite finds pages that cannot be, but keeps no checksums: a byte that changed inside a row is data to it,
 * and could turn an object into one that was deleted, or name one that never was. So each row carries a sum
 * over its columns, computed and compared by a function of ours within the statements themselves.
 */
#include "ledger/database/checksum.h"

#include "base/short-hash.h"
#include "ledger/database/result.h"

uint64_t ledger_sum_number(uint64_t sum, int64_t number)
{
        return XXH3_64bits_withSeed(&number, sizeof(number), sum + SQLITE_INTEGER);
}

uint64_t ledger_sum_text(uint64_t sum, const char *text, size_t size)
{
        return XXH3_64bits_withSeed(text, size, sum + SQLITE_TEXT);
}

/* The bytes of a text are asked for as a blob: as a text they would be copied, to end with a zero. */
static uint64_t sum_value(uint64_t sum, sqlite3_value *value, int64_t *number, size_t *size)
{
        const char *bytes;

        switch (sqlite3_value_type(value)) {
        case SQLITE_INTEGER:
                *number = sqlite3_value_int64(value);
                return ledger_sum_number(sum, *number);
        case SQLITE_TEXT:
                bytes = sqlite3_value_blob(value);
                *size = (size_t)sqlite3_value_bytes(value);
                return ledger_sum_text(sum, bytes ? bytes : "", *size);
        default: /* never written */
                return ~sum;
        }
}

bool ledger_read_values(sqlite3_stmt *statement, struct ledger_values *ret)
{
        uint64_t sum = ROW_VALUES;

        *ret = (struct ledger_values){0};
        for (int i = 0; i < ROW_VALUES; i++)
                sum = sum_value(sum, sqlite3_column_value(statement, i), &ret->number[i], &ret->size[i]);
        ret->checksum = (uint64_t)sqlite3_column_int64(statement, ROW_VALUES);
        return sqlite3_column_type(statement, ROW_VALUES) == SQLITE_INTEGER && ret->checksum == sum;
}

static void row_sum(sqlite3_context *context, int count, sqlite3_value **value)
{
        uint64_t sum = (uint64_t)count, *last = sqlite3_user_data(context);
        int64_t number;
        size_t size;

        for (int i = 0; i < count; i++)
                sum = sum_value(sum, value[i], &number, &size);
        sqlite3_result_int64(context, (sqlite3_int64)sum);
        if (last)
                *last = sum;
}

int ledger_add_functions(sqlite3 *database, uint64_t *last)
{
        return ledger_errno(database, sqlite3_create_function(database, "row_sum", -1,
                                                              SQLITE_UTF8 | SQLITE_DETERMINISTIC, last,
                                                              row_sum, NULL, NULL));
}
