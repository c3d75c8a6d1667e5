/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Number and sum of all entries, table by table, kept in the table `sums` and written with each commit:
 * damage may hide rows, or put an old page in the place of a new one, without one row being wrong. Functions
 * return 0 or a negative errno; -EBADMSG: the file is not what was written.
 */
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/database/sql.h"

struct table_sum {
        uint64_t count;
        uint64_t total; /* the entries' checksums, added modulo 2^64 */
};

enum summed_table { SUM_ROWS, SUM_SCOPES, SUM_PAUSES, SUM_DOUBTS, SUM_TABLES };

struct ledger_sums {
        struct table_sum table[SUM_TABLES];
};

/* Checks the whole file: SQLite's pages, each entry, the sums. *ret: the sums. */
int ledger_check(sqlite3 *database, struct ledger_sums *ret);

/* Computes the sums again from the entries. */
int ledger_sums_compute(sqlite3 *database, struct ledger_sums *ret);
/* Pauses and doubts are few: their sums are computed again with each change, or compared with the known. */
int ledger_sums_compute_small(sqlite3 *database, struct ledger_sums *sums);
int ledger_sums_check_small(sqlite3 *database, const struct ledger_sums *sums);

/* Binds the sums to a statement that has SUMS_VALUES. */
void ledger_sums_bind(sqlite3_stmt *statement, const struct ledger_sums *sums);

/*
 * The checksum of one entry of a table: XXH3 over its columns in their order, seeded with how many they are.
 * Statements compute it with the SQL function row_sum(column, ...); rows that are written or read as a whole
 * are summed here.
 */

/* Begins with the number of values; then value by value. `size` without the final zero. */
uint64_t ledger_sum_number(uint64_t sum, int64_t number);
uint64_t ledger_sum_text(uint64_t sum, const char *text, size_t size);

/* The values of a selected row: its numbers, and the sizes of its texts (bytes). Each column is asked for
 * once, because those calls are most of the cost of reading a row. */
struct ledger_values {
        int64_t number[ROW_VALUES];
        size_t size[ROW_VALUES];
        uint64_t checksum; /* the stored one */
};
/* Reads a statement that selects ROW_SELECTED and is at a row; false if the checksum is wrong. */
bool ledger_read_values(sqlite3_stmt *statement, struct ledger_values *ret);

/* Registers row_sum(). Each sum that it computes goes to *last as well, unless `last` is NULL; *last must
 * live as long as the connection. Errors: ledger_errno(). */
int ledger_add_functions(sqlite3 *database, uint64_t *last);
