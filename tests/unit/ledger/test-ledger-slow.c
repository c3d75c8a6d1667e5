/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that syncs when the test lets it. The thread of the loop never waits for it between opening the
 * ledger and closing it: not for the log, nor for a checkpoint, nor for the log that begins anew; and what
 * it is told meanwhile is not lost.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/duration.h"
#include "ledger/ledger.h"
#include "tests/unit/ledger/ledger-folder.h"
#include "tests/unit/valgrind.h"

/* ---- the disk */

static pthread_t loop;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool slow;
static unsigned waiting, allowed, synced_by_loop;

static sqlite3_vfs *usual, slow_vfs;
/* Of the database, and of what has no locks. */
static struct {
        const sqlite3_io_methods *usual;
        sqlite3_io_methods slow;
} method[2];

static int on_sync(sqlite3_file *file, int flags)
{
        pthread_mutex_lock(&mutex);
        if (slow && pthread_equal(pthread_self(), loop)) {
                synced_by_loop++;
        } else if (slow) {
                waiting++;
                while (slow && allowed == 0)
                        pthread_cond_wait(&condition, &mutex);
                waiting--;
                allowed -= allowed > 0;
        }
        pthread_mutex_unlock(&mutex);
        return method[file->pMethods == &method[1].slow].usual->xSync(file, flags);
}

static int on_open(sqlite3_vfs *vfs _unused_, sqlite3_filename name, sqlite3_file *file, int flags,
                   int *ret_flags)
{
        int which = (flags & SQLITE_OPEN_MAIN_DB) == 0,
            code = usual->xOpen(usual, name, file, flags, ret_flags);

        if (code != SQLITE_OK || !name)
                return code;
        pthread_mutex_lock(&mutex);
        if (!method[which].usual) {
                method[which].usual = file->pMethods;
                method[which].slow = *file->pMethods;
                method[which].slow.xSync = on_sync;
        }
        pthread_mutex_unlock(&mutex);
        file->pMethods = &method[which].slow;
        return code;
}

static void be_slow(bool is)
{
        pthread_mutex_lock(&mutex);
        slow = is;
        allowed = 0;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
}

/* One sync goes on, if there is one. */
static void allow_one(void)
{
        pthread_mutex_lock(&mutex);
        if (waiting > 0 && allowed == 0)
                allowed = 1;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
}

/* ---- what is written */

static void put(struct ledger *ledger, unsigned number, unsigned attempts)
{
        static char error[2000];
        char key[32];
        struct ledger_row row = {.key = key,
                                 .uid = (char[]){"uid"},
                                 .attempts = attempts,
                                 .next_realtime = 1000 + number,
                                 .next_reason = RUN_RETRY,
                                 .last_error = error,
                                 .first_error = error};

        memset(error, 'x', sizeof(error) - 1);
        snprintf(key, sizeof(key), "n/object-%04u", number);
        assert_int_equal(ledger_put(ledger, "w", &row), 0);
}

static uint64_t attempts_of(struct ledger *ledger, unsigned number)
{
        const struct ledger_row *row;
        char key[32];

        snprintf(key, sizeof(key), "n/object-%04u", number);
        assert_int_equal(ledger_look(ledger, "w", key, "uid", &row), 0);
        return row->attempts;
}

static struct ledger *open_ledger(void)
{
        struct error error = ERROR_NONE;
        struct ledger *ledger = NULL;
        char *aside = NULL;

        assert_int_equal(ledger_open(path, &ledger, &aside, &error), 0);
        assert_null(aside);
        return ledger;
}

/* Commits until the log is being begun anew: then somebody else is writing, and waits for the disk. */
static unsigned commit_until_busy(struct ledger *ledger)
{
        unsigned count = 0;
        int r;

        do {
                put(ledger, count++, 1);
                r = ledger_try_commit(ledger);
                assert_true(r == 0 || r == -EBUSY);
                ledger_checkpoint_maybe(ledger);
                if (r == 0 && count > 500)
                        allow_one();
                assert_true(count < 100000);
        } while (r == 0);
        return count;
}

static int count_visit(const char *watch _unused_, const struct ledger_row *row _unused_, void *userdata)
{
        ++*(unsigned *)userdata;
        return 0;
}

static void test_the_loop_never_waits_for_the_disk(void **state)
{
        const unsigned many = under_valgrind() ? 1500 : 6000;
        struct ledger *ledger = open_ledger();
        struct ledger_failing failing;
        uint64_t due = 0, now = clock_realtime_usec();
        unsigned count, visited = 0;
        int r;

        (void)state;
        be_slow(true);
        count = commit_until_busy(ledger);
        /* More than a transaction takes, and than the cache has room for. */
        for (unsigned i = 0; i < many; i++)
                put(ledger, i, 2);
        assert_int_equal(ledger_try_commit(ledger), -EBUSY);
        assert_int_equal(ledger_hold(ledger), 0);
        assert_int_equal(attempts_of(ledger, many - 1), 2);
        assert_int_equal(ledger_count_failing(ledger, "w", &failing), 0);
        assert_int_equal(failing.failing, count - 1); /* as of the last commit */
        assert_int_equal(ledger_visit_worst(ledger, 5, NULL, count_visit, &visited), 5);
        assert_int_equal(ledger_visit_due(ledger, now, 5, count_visit, &visited), 0);
        assert_int_equal(ledger_next_due(ledger, now, &due), 0);
        assert_int_equal(due, now);

        be_slow(false);
        while ((r = ledger_try_commit(ledger)) == -EBUSY)
                sched_yield();
        assert_int_equal(r, 0);
        assert_int_equal(ledger_count_failing(ledger, "w", &failing), 0);
        assert_int_equal(failing.failing, count > many ? count : many);
        assert_int_equal(ledger_visit_due(ledger, now, 5, count_visit, &visited), 5);
        assert_int_equal(synced_by_loop, 0);
        ledger_free(ledger);

        ledger = open_ledger();
        assert_int_equal(attempts_of(ledger, 0), 2);
        assert_int_equal(attempts_of(ledger, many - 1), 2);
        ledger_free(ledger);
}

/* However long the load lasts. */
static void test_the_log_is_bounded(void **state)
{
        const unsigned changes = under_valgrind() ? 900 : 9000;
        struct ledger *ledger = open_ledger();
        char log[160];
        struct stat status;

        (void)state;
        for (unsigned i = 0; i < changes; i++) {
                put(ledger, i % 300, i);
                if (i % 3 == 0)
                        assert_int_equal(ledger_commit(ledger), 0);
                ledger_checkpoint_maybe(ledger);
        }
        assert_int_equal(ledger_commit(ledger), 0);
        snprintf(log, sizeof(log), "%s-wal", path);
        assert_int_equal(stat(log, &status), 0);
        print_message("%lld bytes of log\n", (long long)status.st_size);
        assert_true(status.st_size < 64 << 20); /* of 150 MiB that were written */
        ledger_free(ledger);
}

/* ---- */

static int set_up(void **state)
{
        (void)state;
        if (folder_make("slow") < 0)
                return -1;
        loop = pthread_self();
        usual = sqlite3_vfs_find(NULL);
        slow_vfs = *usual;
        slow_vfs.zName = "slow";
        slow_vfs.xOpen = on_open;
        alarm(under_valgrind() ? 600 : 100);
        return sqlite3_vfs_register(&slow_vfs, 1) == SQLITE_OK ? 0 : -1;
}

static int tear_down(void **state)
{
        (void)state;
        return folder_remove();
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_the_loop_never_waits_for_the_disk),
                cmocka_unit_test(test_the_log_is_bounded),
        };

        return cmocka_run_group_tests(test, set_up, tear_down);
}
