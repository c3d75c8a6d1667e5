/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger's file, transactions, pages of rows and checkpoints: see ledger.h. Nothing is durable before
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

/* ---- opening */

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
                r = ledger_prepare_all(ledger);
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

/* ---- transactions */

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
