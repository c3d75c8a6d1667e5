/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the ledger holds what was written: entry by entry (lib/ledger/database/checksum.c), and table by
 * table, because a page may come to stand in the place of another.
 */
#include "ledger/database/sums.h"

#include <errno.h>
#include <string.h>

#include "ledger/database/result.h"
#include "ledger/database/sql.h"

/* The first column of the first row must be `expected`. sums: of the parameters; NULL: there are none. */
static int expect(sqlite3 *database, const char *sql, const struct ledger_sums *sums, const char *expected)
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
        int r = expect(database, "PRAGMA integrity_check(1)", NULL, "ok");

        if (r >= 0)
                r = ledger_sums_compute(database, ret);
        return r < 0 ? r
                     : expect(database, "SELECT (" SUMS_COLUMNS ") IS (" SUMS_VALUES ") FROM sums", ret,
                              "1");
}
