/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the ledger holds what was written. SQLite finds pages that cannot be, but keeps no checksums: a
 * byte that changed inside a row is data to it, and could turn an object into one that was deleted, or name
 * one that never was. So each row carries a sum over its columns, computed and compared by a function of
 * ours within the statements themselves.
 */
#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "supervisor/ledger-internal.h"

static uint64_t sum_value(uint64_t sum, sqlite3_value *value)
{
        int type = sqlite3_value_type(value);
        sqlite3_int64 number;
        const void *bytes;

        switch (type) {
        case SQLITE_INTEGER:
                number = sqlite3_value_int64(value);
                return XXH3_64bits_withSeed(&number, sizeof(number), sum + (unsigned)type);
        case SQLITE_TEXT:
                bytes = sqlite3_value_text(value);
                return XXH3_64bits_withSeed(bytes ? bytes : "", (size_t)sqlite3_value_bytes(value),
                                            sum + (unsigned)type);
        default: /* never written */
                return ~sum;
        }
}

static void row_sum(sqlite3_context *context, int count, sqlite3_value **value)
{
        uint64_t sum = (uint64_t)count;

        for (int i = 0; i < count; i++)
                sum = sum_value(sum, value[i]);
        sqlite3_result_int64(context, (sqlite3_int64)sum);
}

int ledger_add_functions(sqlite3 *database)
{
        return ledger_errno(database, sqlite3_create_function(database, "row_sum", -1,
                                                              SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                                              row_sum, NULL, NULL));
}

/* The first column of the first row must be `expected`. */
static int expect(sqlite3 *database, const char *sql, const char *expected)
{
        sqlite3_stmt *statement = NULL;
        int code = sqlite3_prepare_v2(database, sql, -1, &statement, NULL), r;

        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        if (code == SQLITE_ROW) {
                const char *found = (const char *)sqlite3_column_text(statement, 0);

                r = found && strcmp(found, expected) == 0 ? 0 : -EBADMSG;
        } else {
                r = code == SQLITE_DONE ? -EBADMSG : ledger_errno(database, code);
        }
        sqlite3_finalize(statement);
        return r;
}

int ledger_check(sqlite3 *database)
{
        int r = expect(database, "PRAGMA integrity_check(1)", "ok");

        if (r >= 0)
                r = expect(database,
                           "SELECT count(*) FROM ledger WHERE checksum IS NOT row_sum(" ROW_COLUMNS ")",
                           "0");
        if (r >= 0)
                r = expect(database,
                           "SELECT count(*) FROM scope WHERE checksum IS NOT row_sum(watch, scope, cluster)",
                           "0");
        return r;
}
