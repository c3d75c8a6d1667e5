/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The checksum of one entry of a table: XXH3 over its columns in their order, seeded with how many they are.
 * Statements compute it with the SQL function row_sum(column, ...); rows that are written or read as a whole
 * are summed here.
 */
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/database/sql.h"

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
/* For a statement that selects ROW_SELECTED and stands on a row: false when the checksum is wrong. */
bool ledger_read_values(sqlite3_stmt *statement, struct ledger_values *ret);

/* Registers row_sum(). Each sum that it computes goes to *last as well, unless `last` is NULL; *last must
 * live as long as the connection. Errors: ledger_errno(). */
int ledger_add_functions(sqlite3 *database, uint64_t *last);
