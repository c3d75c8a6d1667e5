/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for the disk, beside the loop: an fsync may take seconds on a busy one. This is the one thread
 * of the project. It shares nothing with the loop but this file's mutex: it has a connection of its own,
 * blocks every signal, never logs and never forks. A process would do as well, but would have to be
 * supervised; SQLite is made for several connections.
 *
 * - A second after a commit the log is on the disk: that is what a loss of power may take.
 * - Checkpoints. After one that is complete the log begins again, and the first to commit then must sync its
 *   new head before writing on: what is left of the old log would be taken for valid. So the thread
 *   makes that commit itself, after a gate. The loop asks at the gate before each transaction, and while it
 *   is closed does what needs no ledger.
 *
 * A checkpoint that fails is not an error here: the log grows, and the commit that meets the full disk says
 * so. A log that cannot be synced is one, for the next commit: what the kernel could not write it may have
 * dropped, and the next sync would know nothing of it.
 */
#include "ledger/database/checkpoint.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "ledger/database/ledger-schema.h"
#include "ledger/database/result.h"

#define SYNC_SEC   1
#define PASSES_MAX 5
#define REST_PAGES 64 /* few enough to be waited for */

struct checkpointer {
        pthread_t thread;
        pthread_mutex_t mutex;
        pthread_cond_t condition;
        sqlite3 *database;
        bool wanted, ended;
        bool closed;  /* the gate: by the thread */
        bool writing; /* the loop is in a transaction */
        bool unsynced;
        struct timespec sync_at; /* CLOCK_MONOTONIC; when unsynced */
        int error;
};

/* ---- the gate */

static void gate_close(struct checkpointer *checkpointer)
{
        pthread_mutex_lock(&checkpointer->mutex);
        checkpointer->closed = true;
        while (checkpointer->writing && !checkpointer->ended)
                pthread_cond_wait(&checkpointer->condition, &checkpointer->mutex);
        pthread_mutex_unlock(&checkpointer->mutex);
}

static void gate_open(struct checkpointer *checkpointer)
{
        pthread_mutex_lock(&checkpointer->mutex);
        checkpointer->closed = false;
        pthread_cond_broadcast(&checkpointer->condition);
        pthread_mutex_unlock(&checkpointer->mutex);
}

bool checkpointer_enter(struct checkpointer *checkpointer, bool wait)
{
        bool entered;

        pthread_mutex_lock(&checkpointer->mutex);
        while (checkpointer->closed && wait)
                pthread_cond_wait(&checkpointer->condition, &checkpointer->mutex);
        entered = !checkpointer->closed;
        checkpointer->writing = entered;
        pthread_mutex_unlock(&checkpointer->mutex);
        return entered;
}

int checkpointer_leave(struct checkpointer *checkpointer, bool committed)
{
        bool wakes;
        int r;

        pthread_mutex_lock(&checkpointer->mutex);
        checkpointer->writing = false;
        wakes = checkpointer->closed || (committed && !checkpointer->unsynced);
        if (committed && !checkpointer->unsynced) {
                checkpointer->unsynced = true;
                clock_gettime(CLOCK_MONOTONIC, &checkpointer->sync_at);
                checkpointer->sync_at.tv_sec += SYNC_SEC;
        }
        if (wakes)
                pthread_cond_broadcast(&checkpointer->condition);
        r = checkpointer->error;
        pthread_mutex_unlock(&checkpointer->mutex);
        return r;
}

/* ---- the disk */

static void note_error(struct checkpointer *checkpointer, int code)
{
        if (code != SQLITE_IOERR_FSYNC && code != SQLITE_IOERR_DIR_FSYNC)
                return;
        pthread_mutex_lock(&checkpointer->mutex);
        checkpointer->error = -EIO;
        pthread_mutex_unlock(&checkpointer->mutex);
}

static void sync_log(struct checkpointer *checkpointer)
{
        sqlite3_file *log = NULL;

        if (sqlite3_file_control(checkpointer->database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) ==
                    SQLITE_OK &&
            log && log->pMethods)
                note_error(checkpointer, log->pMethods->xSync(log, SQLITE_SYNC_NORMAL));
}

/* The number of pages that were written to the database; -1 on failure. */
static int checkpoint_pass(struct checkpointer *checkpointer, int *done)
{
        int all = 0, before = *done,
            code = sqlite3_wal_checkpoint_v2(checkpointer->database, NULL, SQLITE_CHECKPOINT_PASSIVE, &all,
                                             done);

        if (code != SQLITE_OK) {
                note_error(checkpointer, sqlite3_extended_errcode(checkpointer->database));
                return -1;
        }
        return *done > before ? *done - before : 0;
}

/* What is written meanwhile is less each time. */
static void checkpoint(struct checkpointer *checkpointer)
{
        int done = 0, moved = 0;

        for (int i = 0; i < PASSES_MAX; i++) {
                moved = checkpoint_pass(checkpointer, &done);
                if (moved <= REST_PAGES)
                        break;
        }
        if (moved < 0)
                return;
        gate_close(checkpointer);
        moved = checkpoint_pass(checkpointer, &done);
        if (moved >= 0 && sqlite3_exec(checkpointer->database, LEDGER_TOUCH, NULL, NULL, NULL) != SQLITE_OK)
                note_error(checkpointer, sqlite3_extended_errcode(checkpointer->database));
        gate_open(checkpointer);
}

/* ---- the thread */

static bool is_later(const struct timespec *time)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec < time->tv_sec || (now.tv_sec == time->tv_sec && now.tv_nsec < time->tv_nsec);
}

static void *checkpointer_main(void *userdata)
{
        struct checkpointer *checkpointer = userdata;

        pthread_mutex_lock(&checkpointer->mutex);
        while (!checkpointer->ended) {
                void (*work)(struct checkpointer *) = checkpointer->wanted ? checkpoint : sync_log;

                if (!checkpointer->wanted && !checkpointer->unsynced) {
                        pthread_cond_wait(&checkpointer->condition, &checkpointer->mutex);
                        continue;
                }
                if (!checkpointer->wanted && is_later(&checkpointer->sync_at)) {
                        pthread_cond_timedwait(&checkpointer->condition, &checkpointer->mutex,
                                               &checkpointer->sync_at);
                        continue;
                }
                if (!checkpointer->wanted)
                        checkpointer->unsynced = false;
                checkpointer->wanted = false;
                pthread_mutex_unlock(&checkpointer->mutex);
                work(checkpointer);
                pthread_mutex_lock(&checkpointer->mutex);
        }
        pthread_mutex_unlock(&checkpointer->mutex);
        return NULL;
}

static int thread_start(struct checkpointer *checkpointer)
{
        sigset_t all, before;
        int r;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&checkpointer->thread, NULL, checkpointer_main, checkpointer);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return -r;
}

static int open_database(const char *path, sqlite3 **ret)
{
        int r = ledger_errno(NULL,
                             sqlite3_open_v2(path, ret, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL));

        /* Asked for its version it opens the log, which sync_log() needs. */
        return r < 0 ? r
                     : ledger_errno(*ret, sqlite3_exec(*ret,
                                                       "PRAGMA synchronous = NORMAL;"
                                                       "PRAGMA wal_autocheckpoint = 0;"
                                                       "PRAGMA journal_size_limit = " LEDGER_LOG_MAX ";"
                                                       "PRAGMA user_version",
                                                       NULL, NULL, NULL));
}

static int condition_init(pthread_cond_t *condition)
{
        pthread_condattr_t attributes;
        int r;

        r = pthread_condattr_init(&attributes);
        if (r != 0)
                return -r;
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        r = pthread_cond_init(condition, &attributes);
        pthread_condattr_destroy(&attributes);
        return -r;
}

int checkpointer_new(const char *path, struct checkpointer **ret, struct error *error)
{
        struct checkpointer *checkpointer = calloc(1, sizeof(*checkpointer));
        int r;

        if (!checkpointer)
                return error_set(error, -ENOMEM, "no memory");
        pthread_mutex_init(&checkpointer->mutex, NULL);
        r = condition_init(&checkpointer->condition);
        if (r >= 0)
                r = open_database(path, &checkpointer->database);
        if (r >= 0 && (r = thread_start(checkpointer)) < 0)
                error_set(error, r, "no thread: %s", strerror(-r));
        if (r < 0) {
                error_set(error, r, "%s",
                          checkpointer->database ? sqlite3_errmsg(checkpointer->database) : strerror(-r));
                sqlite3_close(checkpointer->database);
                free(checkpointer);
                return r;
        }
        *ret = checkpointer;
        return 0;
}

static void checkpointer_signal(struct checkpointer *checkpointer, bool *flag)
{
        pthread_mutex_lock(&checkpointer->mutex);
        *flag = true;
        pthread_cond_broadcast(&checkpointer->condition);
        pthread_mutex_unlock(&checkpointer->mutex);
}

void checkpointer_start(struct checkpointer *checkpointer)
{
        checkpointer_signal(checkpointer, &checkpointer->wanted);
}

void checkpointer_free(struct checkpointer *checkpointer)
{
        if (!checkpointer)
                return;
        checkpointer_signal(checkpointer, &checkpointer->ended);
        pthread_join(checkpointer->thread, NULL);
        sqlite3_close(checkpointer->database);
        pthread_cond_destroy(&checkpointer->condition);
        pthread_mutex_destroy(&checkpointer->mutex);
        free(checkpointer);
}
