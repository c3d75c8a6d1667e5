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
/* What is selected of it: behind it whether the row is what was written (ledger-check.c), and its sum. */
#define ROW_INTACT   "checksum IS row_sum(" ROW_COLUMNS ")"
#define SCOPE_INTACT "checksum IS row_sum(watch, scope, cluster)"
#define ROW_SELECTED ROW_COLUMNS ", " ROW_INTACT ", checksum"

#define LEDGER_TEXT_MAX 2048 /* of an error */

enum ledger_statement {
        STATEMENT_BEGIN,
        STATEMENT_COMMIT,
        STATEMENT_ROLLBACK,
        STATEMENT_GET,
        STATEMENT_PUT,
        STATEMENT_PUT_RUN,
        STATEMENT_UPDATE,
        STATEMENT_UPDATE_RUN,
        STATEMENT_REMOVE,
        STATEMENT_PAGE,
        STATEMENT_DUE,
        STATEMENT_NEXT_DUE,
        STATEMENT_COUNT_ROWS,
        STATEMENT_QUARANTINED,
        STATEMENT_COUNT_QUARANTINED,
        STATEMENT_SCOPE_GET,
        STATEMENT_SCOPE_SET,
        STATEMENT_SUMS,
        STATEMENT_TOTAL
};

struct checkpointer;

/* The last row that was visited as due. Its time stays in the ledger: should we die before its run, it is
 * due at once, not later. */
struct due_cursor {
        uint64_t realtime;
        char *watch, *key, *uid;
        uint64_t visited_realtime;
        uint64_t soonest; /* of those behind it; may be of one that is gone; 0 = none */
        bool soonest_known;
};

#define CACHE_ROWS 4096 /* more than a watch may announce before its keys are handled */

/* What the indexes of the table are made of: a row in which none of it has changed is written at half the
 * cost. */
struct row_index {
        uint64_t next_realtime, quarantined_until, throttled, attempts;
        bool permanent;
};

struct cached_row {
        struct cached_row *chain, *newer, *older, *next_dirty;
        uint64_t hash;
        const char *watch;
        struct ledger_row row;
        struct ledger_run run; /* when has_run */
        char *run_text[4];
        bool exists;  /* in the ledger, as everybody is to see it */
        bool on_disk; /* in the database; `index` is how it stands there */
        bool dirty, has_run;
        uint64_t checksum; /* of the row on disk */
        struct row_index index;
        char names[];
};

struct row_cache {
        struct cached_row *bucket[CACHE_ROWS];
        struct cached_row *newest, *oldest;    /* by their last use */
        struct cached_row *dirty, *last_dirty; /* in the order of change: neighbours share pages */
        size_t count, dirty_count;
};

/* ledger-cache.c */
struct cached_row *cache_find(struct row_cache *cache, const char *watch, const char *key, const char *uid);
struct cached_row *cache_add(struct row_cache *cache, const char *watch, const char *key, const char *uid);
bool cache_is_full(const struct row_cache *cache);
void cache_make_room(struct row_cache *cache); /* what is dirty stays */
void cache_forget(struct row_cache *cache, struct cached_row *cached);
void cache_clear(struct row_cache *cache, bool dirty_too);
void cache_mark_dirty(struct row_cache *cache, struct cached_row *cached);
int cached_keep_row(struct cached_row *cached, const struct ledger_row *row);
int cached_keep_run(struct cached_row *cached, const struct ledger_run *run);

/* Number and sum of all entries: damage may hide rows without one of them being wrong. */
struct table_sum {
        uint64_t count, total;
};

struct ledger_sums {
        struct table_sum rows, scopes;
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
        struct row_cache cache;
        struct ledger_sums sums; /* with the open transaction */
        bool sums_known, sums_changed;
        uint64_t last_sum; /* of an entry */
};

sqlite3_stmt *ledger_bind(struct ledger *ledger, enum ledger_statement which, const char *watch,
                          const char *key, const char *uid);
int ledger_run_once(struct ledger *ledger, enum ledger_statement which);
/* A statement that writes one entry; with its checksum. */
int ledger_write_entry(struct ledger *ledger, enum ledger_statement which, uint64_t *ret_checksum);
int ledger_begin(struct ledger *ledger); /* a transaction, unless there is one */

/* Of a statement that selects ROW_SELECTED; -EBADMSG when it is not what was written. The strings are
 * borrowed from it until its next step. */
int ledger_borrow_row(sqlite3_stmt *statement, struct ledger_row *ret);
int ledger_copy_row(const struct ledger_row *from, struct ledger_row *ret);
const char *ledger_column(sqlite3_stmt *statement, int column);

/* Brings the changed rows of the cache into the transaction: before a statement that looks at more than one
 * row, or at one that may be there. */
int ledger_flush(struct ledger *ledger);
/* A statement that is asked for rarely; watch, key and uid (?1, ?2, ?3) are bound where they are not NULL.
 */
int ledger_prepare(struct ledger *ledger, const char *question, const char *watch, const char *key,
                   const char *uid, sqlite3_stmt **ret);
int ledger_finish(struct ledger *ledger, sqlite3_stmt *statement); /* runs it once and ends it */

/* A negative errno for a result code of SQLite; 0 for OK, ROW and DONE. */
int ledger_errno(sqlite3 *database, int code);

/* Opens the database file, checks and migrates its schema, prepares nothing. -EBADMSG: the file is corrupt.
 */
int ledger_database_open(const char *path, sqlite3 **ret, struct error *error);

/* What a statement that selects ROW_SELECTED finds. The visitor may write rows: a page is copied before the
 * first call. */
int ledger_visit_page(struct ledger *ledger, sqlite3_stmt *statement, size_t limit, ledger_visit_t visit,
                      void *userdata);

/* row_sum(column, ...): see ledger-check.c. The last one that was computed goes to *last, unless NULL. */
int ledger_add_functions(sqlite3 *database, uint64_t *last);
/* The whole of it, row by row. -EBADMSG. */
int ledger_check(sqlite3 *database, struct ledger_sums *ret);
int ledger_sums_compute(sqlite3 *database, struct ledger_sums *ret);
/* In statements that have four parameters for it. */
void ledger_sums_bind(sqlite3_stmt *statement, const struct ledger_sums *sums);
/* An entry has come, gone, or has another checksum. */
void ledger_sums_note(struct ledger *ledger, struct table_sum *sum, const uint64_t *before,
                      const uint64_t *after);

int checkpointer_new(const char *path, struct checkpointer **ret);
void checkpointer_start(struct checkpointer *checkpointer); /* one checkpoint; ignored while one runs */
void checkpointer_free(struct checkpointer *checkpointer);  /* waits for the one that runs */
