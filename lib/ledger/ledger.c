/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger's file, its statements, transactions and pages of rows: see ledger.h. Nothing is durable before
 * ledger_commit(), and the supervisor sends no RUN before that.
 */
#include "ledger/ledger.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "ledger/internal.h"

#define CHECKPOINT_PAGES 1024 /* 4 MiB */
#define CHECKPOINT_USEC  (60 * USEC_PER_SEC)

#define STATE_VALUES                                                                                        \
        "?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, "    \
        "?24, ?25"
#define NAME_VALUES "?1, ?2, ?3"
/* What no index has. */
#define PLAIN_COLUMNS                                                                                       \
        "fingerprint, failed_fingerprint, next_reason, last_error, first_error, handled_realtime, "         \
        "deleting, crashes, crashed_realtime, settling, written_realtime, written_version, "                \
        "known_version, unselected, related, refused, kinds"
#define PLAIN_VALUES "?4, ?5, ?8, ?9, ?10, ?11, ?13, ?15, ?16, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25"
#define RUN_VALUES   "?26, ?27, ?28, ?29, ?30, ?31"
#define SUM_VALUE    "?32" /* of a row that is written with its run: computed with the values */
/* A row of which nothing is known yet; one with the run that it has. */
#define SUM_OF_BLANK                                                                                        \
        "row_sum(?1, ?2, ?3, 0, 0, 0, 0, '', '', '', 0, 0, 0, 0, 0, 0, 0, '', 0, '', 0, 0, 0, "             \
        "0, '', 0, 0, '', '', '', '')"
#define SUM_KEEPING_RUN "row_sum(" NAME_VALUES ", " STATE_VALUES ", " RUN_COLUMNS ")"

static const char *const sql[STATEMENT_TOTAL] = {
        [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
        [STATEMENT_COMMIT] = "COMMIT",
        [STATEMENT_ROLLBACK] = "ROLLBACK",
        [STATEMENT_GET] = "SELECT " ROW_SELECTED " FROM ledger WHERE watch = ?1 AND (key, uid) >= (?2, ?3)"
                          " ORDER BY key, uid LIMIT ?4",
        [STATEMENT_RUN] = "SELECT " RUN_COLUMNS ", " ROW_INTACT
                          " FROM ledger WHERE watch = ?1 AND key = ?2 AND uid = ?3",
        [STATEMENT_OWE] = "INSERT INTO ledger (watch, key, uid, checksum)"
                          " VALUES (?1, ?2, ?3, " SUM_OF_BLANK ")",
        [STATEMENT_INSERT] = "INSERT INTO ledger (" ROW_COLUMNS ", checksum, " RUN_COLUMNS ")"
                             " VALUES (" NAME_VALUES ", " STATE_VALUES ", " SUM_VALUE ", " RUN_VALUES ")",
        [STATEMENT_MOVE] =
                "UPDATE ledger SET (" ROW_STATE ", checksum) = (" STATE_VALUES ", " SUM_KEEPING_RUN ")"
                " WHERE watch = ?1 AND key = ?2 AND uid = ?3",
        [STATEMENT_MOVE_RUN] = "UPDATE ledger SET (" ROW_STATE ", checksum, " RUN_COLUMNS ")"
                               " = (" STATE_VALUES ", " SUM_VALUE ", " RUN_VALUES ")"
                               " WHERE watch = ?1 AND key = ?2 AND uid = ?3",
        [STATEMENT_UPDATE] =
                "UPDATE ledger SET (" PLAIN_COLUMNS ", checksum) = (" PLAIN_VALUES ", " SUM_KEEPING_RUN ")"
                " WHERE watch = ?1 AND key = ?2 AND uid = ?3",
        [STATEMENT_UPDATE_RUN] = "UPDATE ledger SET (" PLAIN_COLUMNS ", checksum, " RUN_COLUMNS ")"
                                 " = (" PLAIN_VALUES ", " SUM_VALUE ", " RUN_VALUES ")"
                                 " WHERE watch = ?1 AND key = ?2 AND uid = ?3",
        [STATEMENT_REMOVE] = "DELETE FROM ledger WHERE watch = ?1 AND key = ?2 AND uid = ?3",
        [STATEMENT_PAGE] = "SELECT " ROW_SELECTED " FROM ledger WHERE watch = ?1 AND (key, uid) > (?2, ?3)"
                           " ORDER BY key, uid LIMIT ?4",
        [STATEMENT_DUE] = "SELECT " ROW_SELECTED " FROM ledger WHERE next_realtime > 0"
                          " AND (next_realtime, watch, key, uid) > (?1, ?2, ?3, ?4) AND next_realtime <= ?5"
                          " ORDER BY next_realtime, watch, key, uid LIMIT ?6",
        [STATEMENT_NEXT_DUE] = "SELECT next_realtime FROM ledger WHERE next_realtime > 0"
                               " AND (next_realtime, watch, key, uid) > (?1, ?2, ?3, ?4)"
                               " ORDER BY next_realtime, watch, key, uid LIMIT 1",
        [STATEMENT_SCOPE_GET] = "SELECT scope, cluster, " SCOPE_INTACT ", checksum"
                                " FROM scope WHERE watch = ?1",
        [STATEMENT_SCOPE_SET] = "INSERT OR REPLACE INTO scope (watch, scope, cluster, checksum)"
                                " VALUES (?1, ?2, ?3, row_sum(?1, ?2, ?3))",
        [STATEMENT_SUMS] = "UPDATE sums SET (" SUMS_COLUMNS ") = (" SUMS_VALUES ")",
};

/* ---- opening */

static int prepare_all(struct ledger *ledger)
{
        for (size_t i = 0; i < STATEMENT_TOTAL; i++) {
                int r = ledger_errno(ledger->database, sqlite3_prepare_v3(ledger->database, sql[i], -1,
                                                                          SQLITE_PREPARE_PERSISTENT,
                                                                          &ledger->statement[i], NULL));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int count_wal_pages(void *userdata, sqlite3 *database _unused_, const char *name _unused_, int pages)
{
        struct ledger *ledger = userdata;

        ledger->wal_pages = pages;
        return SQLITE_OK;
}

static void ledger_close(struct ledger *ledger)
{
        for (size_t i = 0; i < STATEMENT_TOTAL; i++)
                sqlite3_finalize(ledger->statement[i]);
        checkpointer_free(ledger->checkpointer);
        sqlite3_close(ledger->database);
        ahead_forget(ledger);
        ledger_tallies_forget(ledger);
        free(ledger);
}

static int ledger_try_open(const char *path, struct ledger **ret, struct error *error)
{
        struct ledger *ledger = calloc(1, sizeof(*ledger));
        int r;

        if (!ledger)
                return error_set(error, -ENOMEM, "no memory");
        r = ledger_database_open(path, &ledger->database, error);
        if (r >= 0)
                r = ledger_add_functions(ledger->database, &ledger->last_sum);
        if (r >= 0)
                r = prepare_all(ledger);
        if (r >= 0)
                r = ledger_check(ledger->database, &ledger->sums);
        ledger->sums_known = r >= 0;
        if (r >= 0)
                r = ledger_tallies_know(ledger);
        if (r >= 0) /* by this connection: it has made the log, and syncs the folder with it */
                r = ledger_errno(ledger->database,
                                 sqlite3_exec(ledger->database, LEDGER_TOUCH, NULL, NULL, NULL));
        if (r >= 0)
                r = checkpointer_new(path, &ledger->checkpointer, error);
        if (r < 0) {
                error_set(error, r, "%s",
                          ledger->database ? sqlite3_errmsg(ledger->database) : strerror(-r));
                ledger_close(ledger);
                return r;
        }
        sqlite3_wal_hook(ledger->database, count_wal_pages, ledger);
        ledger->checkpoint_boottime = clock_boottime_usec();
        *ret = ledger;
        return 0;
}

/* The write-ahead log belongs to the file: it goes with it, or it would be applied to the new one. */
static int set_aside(const char *path, char **ret)
{
        static const char *const suffix[] = {"", "-wal", "-shm"};
        _cleanup_free_ char *aside = NULL;

        if (asprintf(&aside, "%s.corrupt-%llu", path,
                     (unsigned long long)(clock_realtime_usec() / USEC_PER_SEC)) < 0) {
                aside = NULL;
                return -ENOMEM;
        }
        for (size_t i = 0; i < ELEMENTS(suffix); i++) {
                _cleanup_free_ char *from = NULL, *to = NULL;

                if (asprintf(&from, "%s%s", path, suffix[i]) < 0 ||
                    asprintf(&to, "%s%s", aside, suffix[i]) < 0)
                        return -ENOMEM;
                if (rename(from, to) < 0 && errno != ENOENT)
                        return -errno;
        }
        *ret = TAKE_PTR(aside);
        return 0;
}

int ledger_open(const char *path, struct ledger **ret, char **ret_set_aside, struct error *error)
{
        _cleanup_free_ char *aside = NULL;
        int r;

        r = ledger_try_open(path, ret, error);
        if (r == -EBADMSG) {
                r = set_aside(path, &aside);
                if (r < 0)
                        return error_set(error, r, "%s", strerror(-r));
                error_done(error);
                r = ledger_try_open(path, ret, error);
        }
        if (r < 0)
                return r;
        *ret_set_aside = TAKE_PTR(aside);
        return 0;
}

void ledger_free(struct ledger *ledger)
{
        if (!ledger)
                return;
        (void)ledger_commit(
                ledger); /* the supervisor has committed before, and has said so if that failed */
        ledger_due_again(ledger);
        cache_clear(&ledger->cache, true);
        ledger_close(ledger);
}

/* ---- statements */

int ledger_run_once(struct ledger *ledger, enum ledger_statement which)
{
        sqlite3_stmt *statement = ledger->statement[which];
        int code = sqlite3_step(statement), r = ledger_errno(ledger->database, code);

        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);
        return r;
}

static int begin(struct ledger *ledger, bool wait)
{
        int r;

        if (ledger->in_transaction)
                return 0;
        if (!checkpointer_enter(ledger->checkpointer, wait))
                return -EBUSY;
        sqlite3_busy_timeout(ledger->database, wait ? LEDGER_BUSY_MSEC : 0);
        r = ledger_run_once(ledger, STATEMENT_BEGIN);
        sqlite3_busy_timeout(ledger->database, LEDGER_BUSY_MSEC);
        ledger->in_transaction = r >= 0;
        ledger->weight = 0;
        if (r < 0)
                (void)checkpointer_leave(ledger->checkpointer, false);
        return r;
}

int ledger_begin(struct ledger *ledger)
{
        return begin(ledger, true);
}

int ledger_try_begin(struct ledger *ledger)
{
        return begin(ledger, false);
}

sqlite3_stmt *ledger_bind(struct ledger *ledger, enum ledger_statement which, const char *watch,
                          const char *key, const char *uid)
{
        sqlite3_stmt *statement = ledger->statement[which];

        sqlite3_bind_text(statement, 1, watch, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 2, key, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 3, uid, -1, SQLITE_STATIC);
        return statement;
}

int ledger_prepare(struct ledger *ledger, const char *question, const char *watch, const char *key,
                   const char *uid, sqlite3_stmt **ret)
{
        int r = ledger_errno(ledger->database,
                             sqlite3_prepare_v2(ledger->database, question, -1, ret, NULL));

        if (r < 0)
                return r;
        if (watch)
                sqlite3_bind_text(*ret, 1, watch, -1, SQLITE_STATIC);
        if (key)
                sqlite3_bind_text(*ret, 2, key, -1, SQLITE_STATIC);
        if (uid)
                sqlite3_bind_text(*ret, 3, uid, -1, SQLITE_STATIC);
        return 0;
}

int ledger_prepare_change(struct ledger *ledger, const char *change, const char *watch, const char *key,
                          const char *uid, sqlite3_stmt **ret)
{
        int r = ledger_begin(ledger);

        /* What is summed anew must not take along what has happened to its table meanwhile. */
        if (r >= 0 && ledger->sums_known && !ledger->small_changed)
                r = ledger_sums_check_small(ledger->database, &ledger->sums);
        if (r >= 0)
                r = ledger_prepare(ledger, change, watch, key, uid, ret);
        ledger->small_changed = ledger->small_changed || r >= 0;
        return r;
}

int ledger_finish(struct ledger *ledger, sqlite3_stmt *statement)
{
        int r = ledger_errno(ledger->database, sqlite3_step(statement));

        sqlite3_finalize(statement);
        return r;
}

/* ---- transactions */

static int write_sums(struct ledger *ledger)
{
        int r = 0;

        if (!ledger->sums_changed && !ledger->small_changed)
                return 0;
        if (!ledger->sums_known)
                r = ledger_sums_compute(ledger->database, &ledger->sums);
        else if (ledger->small_changed)
                r = ledger_sums_compute_small(ledger->database, &ledger->sums);
        if (r < 0)
                return r;
        ledger_sums_bind(ledger->statement[STATEMENT_SUMS], &ledger->sums);
        r = ledger_run_once(ledger, STATEMENT_SUMS);
        if (r >= 0 && sqlite3_changes(ledger->database) != 1)
                r = -EBADMSG;
        ledger->sums_known = r >= 0;
        ledger->sums_changed = ledger->small_changed = false;
        return r;
}

/* What was not written is not what the cache says: then it knows nothing any more. */
static int commit_flushed(struct ledger *ledger, int r)
{
        bool entered = ledger->in_transaction;
        int lost;

        if (r >= 0)
                r = write_sums(ledger);
        if (r >= 0 && ledger->in_transaction)
                r = ledger_run_once(ledger, STATEMENT_COMMIT);
        if (r < 0) {
                if (sqlite3_get_autocommit(ledger->database) == 0)
                        (void)ledger_run_once(
                                ledger, STATEMENT_ROLLBACK); /* the first error is the one that counts */
                cache_clear(&ledger->cache, true);
                ledger_tallies_forget(ledger);
                ledger->sums_known = ledger->sums_changed = ledger->small_changed = false;
        }
        ledger->in_transaction = false;
        ledger->weight = 0;
        lost = entered ? checkpointer_leave(ledger->checkpointer, r >= 0) : 0;
        return r < 0 ? r : lost;
}

int ledger_commit(struct ledger *ledger)
{
        return commit_flushed(ledger, ledger_flush(ledger));
}

int ledger_try_commit(struct ledger *ledger)
{
        int r = ledger_try_flush(ledger);

        return r == -EBUSY && !ledger->in_transaction ? r : commit_flushed(ledger, r);
}

int ledger_hold(struct ledger *ledger)
{
        int r = ledger_try_begin(ledger);

        return r == -EBUSY ? 0 : r;
}

void ledger_rest(struct ledger *ledger)
{
        cache_clear(&ledger->cache, false);
        sqlite3_db_release_memory(ledger->database);
}

int ledger_try_hold(struct ledger *ledger)
{
        int r = ledger_try_begin(ledger);

        return r < 0 ? r : ledger_try_flush(ledger);
}

#define WEIGHT_MAX 600

bool ledger_is_full(const struct ledger *ledger)
{
        return ledger->weight >= WEIGHT_MAX;
}

bool ledger_dirty(const struct ledger *ledger)
{
        return ledger->in_transaction || ledger->cache.dirty;
}

/* ---- pages of rows */

int ledger_visit_page(struct ledger *ledger, sqlite3_stmt *statement, size_t limit, ledger_visit_t visit,
                      void *userdata)
{
        struct page {
                char *watch;
                struct ledger_row row;
        } *page = calloc(limit, sizeof(*page));
        size_t count = 0;
        int code = SQLITE_DONE, r = 0;

        if (!page)
                return -ENOMEM;
        while (r >= 0 && count < limit && (code = sqlite3_step(statement)) == SQLITE_ROW) {
                struct ledger_row row;

                r = ledger_borrow_row(statement, &row);
                if (r >= 0)
                        r = ledger_copy_row(&row, &page[count].row);
                if (r < 0)
                        break;
                page[count].watch = strdup(ledger_column(statement, 0));
                count++;
        }
        if (r >= 0)
                r = ledger_errno(ledger->database, code);
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);

        for (size_t i = 0; i < count; i++) {
                if (r >= 0)
                        r = page[i].watch ? visit(page[i].watch, &page[i].row, userdata) : -ENOMEM;
                free(page[i].watch);
                ledger_row_done(&page[i].row);
        }
        free(page);
        return r < 0 ? r : (int)count;
}

int ledger_visit(struct ledger *ledger, const char *watch, const char *key, const char *uid, size_t limit,
                 ledger_visit_t visit, void *userdata)
{
        sqlite3_stmt *statement;
        int r = ledger_flush(ledger);

        if (r < 0)
                return r;
        statement = ledger_bind(ledger, STATEMENT_PAGE, watch, key, uid);
        sqlite3_bind_int64(statement, 4, (sqlite3_int64)limit);
        return ledger_visit_page(ledger, statement, limit, visit, userdata);
}

/* ---- what is due */

void ledger_due_again(struct ledger *ledger)
{
        struct due_cursor *cursor = &ledger->due;

        free(cursor->watch);
        free(cursor->key);
        free(cursor->uid);
        *cursor = (struct due_cursor){0};
}

/* A clock that was set back: what is written from now on is due before what was visited. */
static void see_clock(struct ledger *ledger, uint64_t now)
{
        if (now < ledger->due.visited_realtime)
                ledger_due_again(ledger);
        ledger->due.visited_realtime = now;
}

static void bind_due(struct ledger *ledger, sqlite3_stmt *statement)
{
        struct due_cursor *cursor = &ledger->due;

        sqlite3_bind_int64(statement, 1, (sqlite3_int64)cursor->realtime);
        sqlite3_bind_text(statement, 2, cursor->watch ? cursor->watch : "", -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 3, cursor->key ? cursor->key : "", -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 4, cursor->uid ? cursor->uid : "", -1, SQLITE_STATIC);
}

struct due_visit {
        struct ledger *ledger;
        ledger_visit_t visit;
        void *userdata;
};

static int visit_due(const char *watch, const struct ledger_row *row, void *userdata)
{
        const struct due_visit *due = userdata;
        struct due_cursor *cursor = &due->ledger->due;
        int r = due->visit(watch, row, due->userdata);

        cursor->realtime = row->next_realtime;
        if (r >= 0)
                r = text_replace(&cursor->watch, watch);
        if (r >= 0)
                r = text_replace(&cursor->key, row->key);
        if (r >= 0)
                r = text_replace(&cursor->uid, row->uid);
        return r;
}

int ledger_visit_due(struct ledger *ledger, uint64_t now, size_t limit, ledger_visit_t visit, void *userdata)
{
        sqlite3_stmt *statement = ledger->statement[STATEMENT_DUE];
        struct due_visit due = {ledger, visit, userdata};
        int r = ledger_try_flush(ledger);

        see_clock(ledger, now);
        ledger->due.soonest_known = false;
        if (r < 0)
                return r == -EBUSY ? 0 : r; /* ledger_next_due() says when to come again */
        bind_due(ledger, statement);
        sqlite3_bind_int64(statement, 5, (sqlite3_int64)now);
        sqlite3_bind_int64(statement, 6, (sqlite3_int64)limit);
        return ledger_visit_page(ledger, statement, limit, visit_due, &due);
}

static int query_number(struct ledger *ledger, enum ledger_statement which, int64_t *ret)
{
        sqlite3_stmt *statement = ledger->statement[which];
        int code = sqlite3_step(statement);

        if (code == SQLITE_ROW)
                *ret = sqlite3_column_int64(statement, 0);
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);
        return ledger_errno(ledger->database, code);
}

int ledger_next_due(struct ledger *ledger, uint64_t now, uint64_t *ret_realtime)
{
        int64_t due = 0;
        int r = 0;

        see_clock(ledger, now);
        if (!ledger->due.soonest_known) {
                r = ledger_try_flush(ledger);
                if (r == -EBUSY)
                        *ret_realtime = now;
                if (r < 0)
                        return r == -EBUSY ? 0 : r;
                bind_due(ledger, ledger->statement[STATEMENT_NEXT_DUE]);
                r = query_number(ledger, STATEMENT_NEXT_DUE, &due);
                ledger->due.soonest = (uint64_t)due;
                ledger->due.soonest_known = r >= 0;
        }
        if (r >= 0)
                *ret_realtime = ledger->due.soonest;
        return r;
}

/* ---- scope */

int ledger_scope_get(struct ledger *ledger, const char *watch, char **ret_scope, char **ret_cluster)
{
        sqlite3_stmt *statement = ledger->statement[STATEMENT_SCOPE_GET];
        _cleanup_free_ char *scope = NULL, *cluster = NULL;
        bool intact;
        int code, r;

        sqlite3_bind_text(statement, 1, watch, -1, SQLITE_STATIC);
        code = sqlite3_step(statement);
        r = ledger_errno(ledger->database, code);
        intact = code != SQLITE_ROW || sqlite3_column_int(statement, 2) == 1;
        scope = strdup(code == SQLITE_ROW ? ledger_column(statement, 0) : "");
        cluster = strdup(code == SQLITE_ROW ? ledger_column(statement, 1) : "");
        if (r >= 0)
                r = ledger_all_was_read(statement);
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);
        if (!scope || !cluster)
                return -ENOMEM;
        if (r < 0)
                return r;
        if (!intact)
                return -EBADMSG;
        *ret_scope = TAKE_PTR(scope);
        *ret_cluster = TAKE_PTR(cluster);
        return 0;
}

int ledger_write_entry(struct ledger *ledger, enum ledger_statement which)
{
        int r = ledger_run_once(ledger, which);

        /* Another number: what was there is there no more. */
        return r >= 0 && sqlite3_changes(ledger->database) != 1 ? -EBADMSG : r;
}

/* 1: there is one. */
static int scope_checksum(struct ledger *ledger, const char *watch, uint64_t *ret)
{
        sqlite3_stmt *statement = ledger->statement[STATEMENT_SCOPE_GET];
        int code;

        sqlite3_bind_text(statement, 1, watch, -1, SQLITE_STATIC);
        code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
                *ret = (uint64_t)sqlite3_column_int64(statement, 3);
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);
        return code == SQLITE_ROW ? 1 : ledger_errno(ledger->database, code);
}

int ledger_scope_set(struct ledger *ledger, const char *watch, const char *scope, const char *cluster)
{
        uint64_t before = 0;
        int existed, r = ledger_begin(ledger);

        if (r < 0)
                return r;
        existed = scope_checksum(ledger, watch, &before);
        if (existed < 0)
                return existed;
        ledger_bind(ledger, STATEMENT_SCOPE_SET, watch, scope, cluster);
        r = ledger_write_entry(ledger, STATEMENT_SCOPE_SET);
        if (r >= 0)
                ledger_sums_note(ledger, SUM_SCOPES, existed ? &before : NULL, &ledger->last_sum);
        return r;
}

/* ---- checkpoints */

void ledger_checkpoint_maybe(struct ledger *ledger)
{
        uint64_t now = clock_boottime_usec();

        int pages = ledger->wal_pages - ledger->checkpoint_pages;

        /* The log began anew: what was in it is in the database. */
        if (pages < 0)
                pages = ledger->wal_pages;
        if (pages == 0 || (pages < CHECKPOINT_PAGES && now - ledger->checkpoint_boottime < CHECKPOINT_USEC))
                return;
        ledger->checkpoint_boottime = now;
        ledger->checkpoint_pages = ledger->wal_pages;
        checkpointer_start(ledger->checkpointer);
}
