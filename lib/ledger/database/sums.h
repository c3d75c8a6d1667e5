/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Number and sum of all entries, table by table, kept in the table `sums` and written with each commit:
 * damage may hide rows, or put an old page in the place of a new one, without one row being wrong. Functions
 * return 0 or a negative errno; -EBADMSG: the file is not what was written.
 */
#include <sqlite3.h>
#include <stdint.h>

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

/* Computes the sums anew from the entries. */
int ledger_sums_compute(sqlite3 *database, struct ledger_sums *ret);
/* Pauses and doubts are few: their sums are computed anew with each change, or compared with the known. */
int ledger_sums_compute_small(sqlite3 *database, struct ledger_sums *sums);
int ledger_sums_check_small(sqlite3 *database, const struct ledger_sums *sums);

/* Binds the sums to a statement that has SUMS_VALUES. */
void ledger_sums_bind(sqlite3_stmt *statement, const struct ledger_sums *sums);
