/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of the ledger share: the connection, its prepared statements, the checkpointer. */
#include <sqlite3.h>
#include <stdbool.h>

#include "supervisor/ledger.h"

#define ROW_STATE                                                                                           \
        "fingerprint, failed_fingerprint, attempts, next_realtime, next_reason, "                           \
        "last_error, first_error, handled_realtime, permanent, deleting, throttled, crashes, "              \
        "crashed_realtime, quarantined_until, settling, written_realtime, written_version, known_version, " \
        "unselected, related"
#define ROW_COLUMNS  "watch, key, uid, " ROW_STATE
/* What is selected of it: the last column says whether the row is what was written (ledger-check.c). */
#define ROW_SELECTED ROW_COLUMNS ", checksum IS row_sum(" ROW_COLUMNS ")"

enum ledger_statement {
        STATEMENT_BEGIN,
        STATEMENT_COMMIT,
        STATEMENT_ROLLBACK,
        STATEMENT_GET,
        STATEMENT_PUT,
        STATEMENT_RUN_PUT,
        STATEMENT_OWE,
        STATEMENT_REMOVE,
        STATEMENT_PAGE,
        STATEMENT_DUE,
        STATEMENT_NEXT_DUE,
        STATEMENT_COUNT_ROWS,
        STATEMENT_QUARANTINED,
        STATEMENT_COUNT_QUARANTINED,
        STATEMENT_SCOPE_GET,
        STATEMENT_SCOPE_SET,
        STATEMENT_TOTAL
};

struct checkpointer;

/* The last row that was visited as due. Its time stays in the ledger: should we die before its run, it is
 * due at once, not later. */
struct due_cursor {
        uint64_t realtime;
        char *watch, *key, *uid;
        uint64_t visited_realtime;
};

struct ledger {
        sqlite3 *database;
        sqlite3_stmt *statement[STATEMENT_TOTAL];
        struct checkpointer *checkpointer;
        uint64_t checkpoint_boottime; /* of the last one that was started */
        int wal_pages,
                checkpoint_pages; /* in the WAL: after the last commit; when the last checkpoint began */
        bool in_transaction;
        struct due_cursor due;
};

/* A negative errno for a result code of SQLite; 0 for OK, ROW and DONE. */
int ledger_errno(sqlite3 *database, int code);

/* Opens the database file, checks and migrates its schema, prepares nothing. -EBADMSG: the file is corrupt.
 */
int ledger_database_open(const char *path, sqlite3 **ret, struct error *error);

/* What a statement that selects ROW_SELECTED finds. The visitor may write rows: a page is copied before the
 * first call. */
int ledger_visit_page(struct ledger *ledger, sqlite3_stmt *statement, size_t limit, ledger_visit_t visit,
                      void *userdata);

/* row_sum(column, ...): see ledger-check.c. */
int ledger_add_functions(sqlite3 *database);
/* The whole of it, row by row. -EBADMSG. */
int ledger_check(sqlite3 *database);

int checkpointer_new(const char *path, struct checkpointer **ret);
void checkpointer_start(struct checkpointer *checkpointer); /* one checkpoint; ignored while one runs */
void checkpointer_free(struct checkpointer *checkpointer);  /* waits for the one that runs */
