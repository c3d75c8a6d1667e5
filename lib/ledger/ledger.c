/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/ledger.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"
#include "ledger/database/ledger-schema.h"
#include "ledger/database/result.h"
#include "ledger/database/sums.h"
#include "ledger/handle/handle.h"
#include "ledger/handle/history-entries.h"
#include "ledger/handle/statement.h"
#include "ledger/handle/tally.h"

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
        ledger_tallies_forget(ledger);
        ledger_history_forget(ledger);
        free(ledger);
}

static int ledger_try_open(const char *path, struct ledger **ret, struct error *error)
{
        struct ledger *ledger = calloc(1, sizeof(*ledger));
        int r;

        if (!ledger)
                return error_set(error, -ENOMEM, "no memory");
        ledger->history.count = -1;
        r = ledger_database_open(path, &ledger->database, error);
        if (r >= 0)
                r = ledger_add_functions(ledger->database, &ledger->last_sum);
        if (r >= 0)
                r = ledger_prepare_first(ledger);
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
int ledger_set_aside(const char *path, const char *why, char **ret)
{
        static const char *const suffix[] = {"", "-wal", "-shm"};
        _cleanup_free_ char *aside = format_string(
                "%s.%s-%llu", path, why, (unsigned long long)(clock_realtime_usec() / USEC_PER_SEC));

        if (!aside)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTS(suffix); i++) {
                _cleanup_free_ char *from = format_string("%s%s", path, suffix[i]);
                _cleanup_free_ char *to = format_string("%s%s", aside, suffix[i]);

                if (!from || !to)
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
                r = ledger_set_aside(path, "corrupt", &aside);
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
        due_cursor_reset(&ledger->due);
        cache_clear(&ledger->cache, true);
        ledger_close(ledger);
}

/* ---- at rest */

void ledger_rest(struct ledger *ledger)
{
        cache_clear(&ledger->cache, false);
        sqlite3_db_release_memory(ledger->database);
}

void ledger_checkpoint_maybe(struct ledger *ledger)
{
        uint64_t now = clock_boottime_usec();
        int pages = ledger->wal_pages - ledger->checkpoint_pages;

        /* The log began again: what was in it is in the database. */
        if (pages < 0)
                pages = ledger->wal_pages;
        if (pages == 0 || (pages < CHECKPOINT_PAGES && now - ledger->checkpoint_boottime < CHECKPOINT_USEC))
                return;
        ledger->checkpoint_boottime = now;
        ledger->checkpoint_pages = ledger->wal_pages;
        checkpointer_start(ledger->checkpointer);
}
