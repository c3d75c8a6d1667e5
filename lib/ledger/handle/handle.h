/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The insides of an open ledger. Only the files of lib/ledger include this. Three rooms build on each other,
 * and the files that others call build on them:
 *
 *   database/  the file: columns, SQL, schema, checksums, checkpoints
 *   row/       a row, and rows in memory
 *   handle/    this struct, and what works on it: statements, transaction, reading, writing, counts
 */
#include <sqlite3.h>

#include "ledger/database/checkpoint.h"
#include "ledger/database/sums.h"
#include "ledger/handle/tally.h"
#include "ledger/row/cache.h"

/* The statements that are prepared once: lib/ledger/handle/statement.c. */
enum ledger_statement {
        STATEMENT_BEGIN,
        STATEMENT_COMMIT,
        STATEMENT_ROLLBACK,
        STATEMENT_GET,
        STATEMENT_RUN,
        STATEMENT_OWE,
        STATEMENT_INSERT,
        STATEMENT_MOVE,
        STATEMENT_MOVE_RUN,
        STATEMENT_UPDATE,
        STATEMENT_UPDATE_RUN,
        STATEMENT_REMOVE,
        STATEMENT_PAGE,
        STATEMENT_DUE,
        STATEMENT_NEXT_DUE,
        STATEMENT_SCOPE_GET,
        STATEMENT_SCOPE_SET,
        STATEMENT_SUMS,
        STATEMENT_HISTORY_REPEAT,
        STATEMENT_HISTORY_INSERT,
        STATEMENT_HISTORY_TRIM,
        STATEMENT_HISTORY_OLDEST,
        STATEMENT_TOTAL
};

struct ledger {
        sqlite3 *database;
        sqlite3_stmt *statement[STATEMENT_TOTAL];
        struct checkpointer *checkpointer;
        uint64_t checkpoint_boottime; /* usec; of the last checkpoint that was started */
        int wal_pages;                /* in the log, after the last commit */
        int checkpoint_pages;         /* in the log, when the last checkpoint began */
        bool in_transaction;
        unsigned weight; /* cost of the writes in the transaction: see ledger_is_full() */
        struct due_cursor due;
        struct row_cache cache;
        struct ledger_sums sums;       /* with the open transaction */
        bool sums_known, sums_changed; /* changed: since the transaction began */
        bool small_changed;            /* likewise, of the tables that are summed again */
        uint64_t last_sum;             /* the last one that row_sum() computed */
        struct ledger_tally *tally;    /* owned list; see lib/ledger/handle/tally.h */
        bool tallies_known;
        struct {
                struct waiting_entry *first, *last; /* that are not written yet */
                size_t waiting;
                int64_t count; /* in the table; -1: unknown */
        } history;             /* lib/ledger/handle/history-entries.h */
};
