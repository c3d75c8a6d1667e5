/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the ledger holds what was written: entry by entry, and table by
 * table, because a page may be written to the place of another.
 */
#include "ledger/database/sums.h"

#include <errno.h>
#include <string.h>

#include "base/short-hash.h"
#include "ledger/database/result.h"

/* The first column of the first row must be `expected`. sums: of the parameters; NULL: there are none. */
static int expect_sums(sqlite3 *database, const char *sql, const struct ledger_sums *sums,
                       const char *expected)
{
        sqlite3_stmt *statement = NULL;
        int code = sqlite3_prepare_v2(database, sql, -1, &statement, NULL), r;

        if (code == SQLITE_OK && sums)
                ledger_sums_bind(statement, sums);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
                r = strcmp(ledger_column(statement, 0), expected) == 0 ? 0 : -EBADMSG;
        else
                r = code == SQLITE_DONE ? -EBADMSG : ledger_errno(database, code);
        sqlite3_finalize(statement);
        return r;
}

/* ---- the sums of the tables */

static int sum_table(sqlite3 *database, const char *sql, struct table_sum *ret)
{
        sqlite3_stmt *statement;
        int code, r = ledger_errno(database, sqlite3_prepare_v2(database, sql, -1, &statement, NULL));

        if (r < 0)
                return r;
        *ret = (struct table_sum){0};
        while ((code = sqlite3_step(statement)) == SQLITE_ROW && r >= 0) {
                if (sqlite3_column_int(statement, 0) != 1)
                        r = -EBADMSG;
                ret->count++;
                ret->total += (uint64_t)sqlite3_column_int64(statement, 1);
        }
        if (r >= 0)
                r = ledger_errno(database, code);
        sqlite3_finalize(statement);
        return r;
}

static const char *const entries[SUM_TABLES] = {
        [SUM_ROWS] = "SELECT " ROW_INTACT ", checksum FROM ledger",
        [SUM_SCOPES] = "SELECT " SCOPE_INTACT ", checksum FROM scope",
        [SUM_PAUSES] = "SELECT " PAUSE_INTACT ", checksum FROM paused",
        [SUM_DOUBTS] = "SELECT " DOUBT_INTACT ", checksum FROM doubtful",
};

static int sum_tables(sqlite3 *database, enum summed_table first, struct ledger_sums *sums)
{
        int r = 0;

        for (enum summed_table table = first; table < SUM_TABLES && r >= 0; table++)
                r = sum_table(database, entries[table], &sums->table[table]);
        return r;
}

int ledger_sums_compute(sqlite3 *database, struct ledger_sums *ret)
{
        return sum_tables(database, SUM_ROWS, ret);
}

int ledger_sums_compute_small(sqlite3 *database, struct ledger_sums *sums)
{
        return sum_tables(database, SUM_PAUSES, sums);
}

int ledger_sums_check_small(sqlite3 *database, const struct ledger_sums *sums)
{
        struct ledger_sums found = *sums;
        int r = sum_tables(database, SUM_PAUSES, &found);

        return r < 0 ? r : memcmp(&found, sums, sizeof(found)) == 0 ? 0 : -EBADMSG;
}

void ledger_sums_bind(sqlite3_stmt *statement, const struct ledger_sums *sums)
{
        for (int i = 0; i < SUM_TABLES; i++) {
                sqlite3_bind_int64(statement, 2 * i + 1, (sqlite3_int64)sums->table[i].count);
                sqlite3_bind_int64(statement, 2 * i + 2, (sqlite3_int64)sums->table[i].total);
        }
}

int ledger_check(sqlite3 *database, struct ledger_sums *ret)
{
        int r = expect_sums(database, "PRAGMA integrity_check(1)", NULL, "ok");

        if (r >= 0)
                r = ledger_sums_compute(database, ret);
        return r < 0 ? r
                     : expect_sums(database, "SELECT (" SUMS_COLUMNS ") IS (" SUMS_VALUES ") FROM sums", ret,
                                   "1");
}

/*
 * SQLite finds pages that cannot be, but keeps no checksums: a byte that changed inside a row is data to it,
 * and could turn an object into one that was deleted, or name one that never was. So each row carries a sum
 * over its columns, computed and compared by a function of ours within the statements themselves.
 */
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
