/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of the ledger share: the connection, its prepared statements, the checkpointer. */
#include <sqlite3.h>
#include <stdbool.h>

#include "ledger/ledger.h"

/* Lists of columns and of parameters. Those of an X-macro follow something, with a comma before each. */
#define COLUMN_NAME(kind, index, number, column, field, since)      ", " #column
#define COLUMN_PARAMETER(kind, index, number, column, field, since) ", ?" #number

#define NAME_COLUMNS  "watch, key, uid"
#define STATE_COLUMNS LEDGER_STATE(COLUMN_NAME)
#define RUN_COLUMNS   LEDGER_RUN(COLUMN_NAME)
#define ROW_COLUMNS   NAME_COLUMNS STATE_COLUMNS RUN_COLUMNS
#define PAUSE_COLUMNS "watch, since_realtime, user, reason"
#define DOUBT_COLUMNS "watch, key, uid, unread, crashes, crashed_realtime, until_realtime, error"

/* Whether an entry is what was written, where a statement looks at it: see lib/ledger/check.c. */
#define ROW_SUM      "row_sum(" ROW_COLUMNS ")"
#define SCOPE_SUM    "row_sum(watch, scope, cluster)"
#define PAUSE_SUM    "row_sum(" PAUSE_COLUMNS ")"
#define DOUBT_SUM    "row_sum(" DOUBT_COLUMNS ")"
#define ROW_INTACT   "checksum IS " ROW_SUM
#define SCOPE_INTACT "checksum IS " SCOPE_SUM
#define PAUSE_INTACT "checksum IS " PAUSE_SUM
#define DOUBT_INTACT "checksum IS " DOUBT_SUM

/* What is selected of a row: all that its checksum is of, so that it is held against it here, not by SQLite,
 * which would read each column once more for that. */
#define ROW_SELECTED ROW_COLUMNS ", checksum"

/* The place of each value in what is selected. */
#define COLUMN_VALUE(kind, index, number, column, field, since) VALUE_##column,
enum row_value {
        VALUE_watch,
        VALUE_key,
        VALUE_uid,
        LEDGER_STATE(COLUMN_VALUE) LEDGER_RUN(COLUMN_VALUE) ROW_VALUES
};
#define CHECKSUM_PARAMETER 32

#define COLUMN_CHECK(kind, index, number, column, field, since)                                             \
        _Static_assert(VALUE_##column + 1 == (number) && (since) <= LEDGER_SCHEMA, #column);
LEDGER_STATE(COLUMN_CHECK)
LEDGER_RUN(COLUMN_CHECK)
_Static_assert(ROW_VALUES + 1 == CHECKSUM_PARAMETER, "checksum");

#define LEDGER_TEXT_MAX 2048 /* of a column that is TEXT, not LONG */

#define LEDGER_LOG_MAX "16777216" /* bytes that stay allocated when it begins anew */
#define TO_STRING_(x)  #x
#define TO_STRING(x)   TO_STRING_(x)
/* Changes nothing, and is a commit all the same: the first one of a log writes its head, and syncs it. */
#define LEDGER_TOUCH   "PRAGMA user_version = " TO_STRING(LEDGER_SCHEMA)

#define LEDGER_BUSY_MSEC 1000 /* somebody who inspects the ledger with a tool may hold it for a moment */

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
#define IF_INDEXED_PLAIN(part)
#define IF_INDEXED_INDEXED(part)                               part
#define INDEX_WIDE(kind, index, number, column, field, since)  IF_INDEXED_##index(LEDGER_WIDE_##kind(field))
#define INDEX_SMALL(kind, index, number, column, field, since) IF_INDEXED_##index(LEDGER_SMALL_##kind(field))
struct row_index {
        LEDGER_STATE(INDEX_WIDE)
        LEDGER_STATE(INDEX_SMALL)
};

/* The texts of a run. */
#define RUN_TEXT_NUMBER(field)
#define RUN_TEXT_TEXT(field)                                RUN_TEXT_##field,
#define RUN_TEXT(kind, index, number, column, field, since) RUN_TEXT_##kind(field)
enum run_text { LEDGER_RUN(RUN_TEXT) RUN_TEXTS };

struct cached_row {
        struct cached_row *chain, *newer, *older, *next_dirty;
        uint64_t hash;
        const char *watch;
        struct ledger_row row;
        struct ledger_run run; /* when has_run */
        char *run_text[RUN_TEXTS];
        bool exists;  /* in the ledger, as everybody is to see it */
        bool on_disk; /* in the database; `index` is how it stands there */
        bool dirty, has_run;
        bool blank;        /* nothing is known of it but whose it is: before its first run */
        bool ahead;        /* nobody has asked for it yet */
        uint64_t checksum; /* of the row on disk */
        struct row_index index;
        size_t names_max;
        char names[];
};

struct row_cache {
        struct cached_row *bucket[CACHE_ROWS];
        struct cached_row *newest, *oldest;    /* by their last use */
        struct cached_row *dirty, *last_dirty; /* in the order of change: neighbours share pages */
        struct cached_row *spare;              /* of what was dropped, for what comes; by `chain` */
        size_t count, dirty_count;
};

/* A watch has no row on disk from (key, uid) up to the end; the end itself may be one. */
struct ledger_gap {
        char *watch, *key, *uid; /* NULL: no gap is known */
        char *end_key, *end_uid; /* NULL: the end of the watch */
};

struct read_ahead {
        struct ledger_gap gap;
        unsigned misses; /* since it was tried the last time */
        size_t read;     /* rows that nobody had asked for, the last time */
        size_t used;     /* of them, or that there is none: asked for since */
};

/* lib/ledger/ahead.c */
bool ahead_knows_of_none(struct ledger *ledger, const struct cached_row *cached);
void ahead_note_use(struct ledger *ledger, struct cached_row *cached); /* it was asked for */
/* Reads the row, and others with it; also that it does not exist. */
int ahead_load(struct ledger *ledger, struct cached_row *cached);
void ahead_forget(struct ledger *ledger); /* a row was added to those on disk */
/* lib/ledger/row.c: what a statement that selects ROW_SELECTED has found is this row. */
int cached_take(struct cached_row *cached, sqlite3_stmt *statement);

/* lib/ledger/cache.c */
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

enum summed_table { SUM_ROWS, SUM_SCOPES, SUM_PAUSES, SUM_DOUBTS, SUM_TABLES };

struct ledger_sums {
        struct table_sum table[SUM_TABLES];
};

/* The columns of the table `sums`, in the order of ledger_sums_bind. */
#define SUMS_COLUMNS                                                                                        \
        "row_count, row_total, scope_count, scope_total, pause_count, pause_total, doubt_count, "           \
        "doubt_total"
#define SUMS_VALUES "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8"

struct ledger {
        sqlite3 *database;
        sqlite3_stmt *statement[STATEMENT_TOTAL];
        struct checkpointer *checkpointer;
        uint64_t checkpoint_boottime; /* of the last one that was started */
        int wal_pages,
                checkpoint_pages; /* in the WAL: after the last commit; when the last checkpoint began */
        bool in_transaction;
        unsigned weight; /* of what the transaction has written: see ledger_is_full() */
        struct due_cursor due;
        struct row_cache cache;
        struct ledger_sums sums;                      /* with the open transaction */
        bool sums_known, sums_changed, small_changed; /* small: the tables that are summed anew */
        uint64_t last_sum;                            /* of an entry */
        struct read_ahead ahead;
        struct ledger_tally *tally; /* lib/ledger/tally.c: of each watch that has or had rows */
        size_t tally_count, tally_last;
        bool tallies_known;
};

/* lib/ledger/statement.c */
int ledger_prepare_all(struct ledger *ledger);
sqlite3_stmt *ledger_bind(struct ledger *ledger, enum ledger_statement which, const char *watch,
                          const char *key, const char *uid);
int ledger_run_once(struct ledger *ledger, enum ledger_statement which);
/* A statement that writes one entry. */
int ledger_write_entry(struct ledger *ledger, enum ledger_statement which);
/* A transaction, unless there is one; the other one does not wait for whoever is writing: -EBUSY. */
int ledger_begin(struct ledger *ledger);
int ledger_try_begin(struct ledger *ledger);

/* Of a statement that selects ROW_SELECTED; -EBADMSG when it is not what was written. The strings are
 * borrowed from it until its next step. */
int ledger_borrow_row(sqlite3_stmt *statement, struct ledger_row *ret);
int ledger_copy_row(const struct ledger_row *from, struct ledger_row *ret);
/* "" also where there was no memory for it: ledger_all_was_read() then says -ENOMEM, until the next step. */
const char *ledger_column(sqlite3_stmt *statement, int column);
int ledger_all_was_read(sqlite3_stmt *statement);
/* A checksum as row_sum() makes it: begins with the number of values, then value by value. */
uint64_t ledger_sum_number(uint64_t sum, int64_t number);
uint64_t ledger_sum_text(uint64_t sum, const char *text, size_t size);
/* What stands in a row that is selected: what is a number, and how long what is a text is. Each column is
 * asked for once: those calls are most of what it costs to read a row. */
struct ledger_values {
        int64_t number[ROW_VALUES];
        size_t size[ROW_VALUES];
        uint64_t checksum;
};
/* Whether they have the checksum that they should have. */
bool ledger_read_values(sqlite3_stmt *statement, struct ledger_values *ret);

/* Brings the changed rows of the cache into the transaction: before a statement that looks at more than one
 * row, or at one that may be there. */
int ledger_flush(struct ledger *ledger);
/* Does not wait: what cannot be written now stays where it is (-EBUSY), and is looked at as of the last
 * commit by whoever can live with that. */
int ledger_try_flush(struct ledger *ledger);
/* A statement that is asked for rarely; watch, key and uid (?1, ?2, ?3) are bound where they are not NULL.
 */
int ledger_prepare(struct ledger *ledger, const char *question, const char *watch, const char *key,
                   const char *uid, sqlite3_stmt **ret);
int ledger_finish(struct ledger *ledger, sqlite3_stmt *statement); /* runs it once and ends it */
/* For a statement that changes a table of pauses or doubts: within the transaction, with the sums. */
int ledger_prepare_change(struct ledger *ledger, const char *change, const char *watch, const char *key,
                          const char *uid, sqlite3_stmt **ret);

/* A negative errno for a result code of SQLite; 0 for OK, ROW and DONE. */
int ledger_errno(sqlite3 *database, int code);

/* Opens the database file, checks and migrates its schema, prepares nothing. -EBADMSG: the file is corrupt.
 */
int ledger_database_open(const char *path, sqlite3 **ret, struct error *error);

/* What a statement that selects ROW_SELECTED finds. The visitor may write rows: a page is copied before the
 * first call. */
int ledger_visit_page(struct ledger *ledger, sqlite3_stmt *statement, size_t limit, ledger_visit_t visit,
                      void *userdata);

/* row_sum(column, ...): see lib/ledger/check.c. The last one that was computed goes to *last, unless NULL.
 */
int ledger_add_functions(sqlite3 *database, uint64_t *last);
/* The whole of it, row by row. -EBADMSG. */
int ledger_check(sqlite3 *database, struct ledger_sums *ret);
int ledger_sums_compute(sqlite3 *database, struct ledger_sums *ret);
/* Of pauses and doubts alone: to be summed anew, or held against what is known. */
int ledger_sums_compute_small(sqlite3 *database, struct ledger_sums *sums);
int ledger_sums_check_small(sqlite3 *database, const struct ledger_sums *sums);
/* In statements that have SUMS_VALUES. */
void ledger_sums_bind(sqlite3_stmt *statement, const struct ledger_sums *sums);
/* An entry has come, gone, or has another checksum. */
void ledger_sums_note(struct ledger *ledger, enum summed_table table, const uint64_t *before,
                      const uint64_t *after);

/* lib/ledger/tally.c: counts of rows, with the open transaction. A row is written; before: as it stands in
 * the database, NULL: not yet; after: NULL: no more. */
void ledger_tally_note(struct ledger *ledger, const char *watch, const struct row_index *before,
                       const struct row_index *after);
int ledger_tallies_know(struct ledger *ledger); /* counts, unless that is done */
void ledger_tallies_forget(struct ledger *ledger);

int checkpointer_new(const char *path, struct checkpointer **ret, struct error *error);
void checkpointer_start(struct checkpointer *checkpointer); /* one checkpoint; ignored while one runs */
/* Around each transaction of the loop: false when it would have to wait and is not to. */
bool checkpointer_enter(struct checkpointer *checkpointer, bool wait);
/* A negative errno: the log could not be synced, and nobody knows what of it is on the disk. */
int checkpointer_leave(struct checkpointer *checkpointer, bool committed);
void checkpointer_free(struct checkpointer *checkpointer); /* waits for the one that runs */
