/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints of the ledger, beside the loop: they fsync, and an fsync may take seconds on a busy disk. This
 * is the one thread of the project. It shares nothing with the loop but this file's mutex: it has a
 * connection of its own, blocks every signal, never logs and never forks. A process would do as well, but
 * would have to be supervised; SQLite is made for several connections.
 *
 * A checkpoint that fails is not an error here: the WAL grows, and the commit that meets the full disk says
 * so.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "supervisor/ledger-internal.h"

#define PASSES_MAX 5

struct checkpointer {
        pthread_t thread;
        pthread_mutex_t mutex;
        pthread_cond_t condition;
        sqlite3 *database;
        bool wanted, ended;
};

/* Until all of the log is in the database, so that the log may begin anew: what was written meanwhile is
 * less each time. */
static void checkpoint(sqlite3 *database)
{
        int all, done;

        for (int i = 0; i < PASSES_MAX; i++)
                if (sqlite3_wal_checkpoint_v2(database, NULL, SQLITE_CHECKPOINT_PASSIVE, &all, &done) !=
                            SQLITE_OK ||
                    all <= done)
                        return;
}

static void *checkpointer_main(void *userdata)
{
        struct checkpointer *checkpointer = userdata;

        pthread_mutex_lock(&checkpointer->mutex);
        while (!checkpointer->ended) {
                if (!checkpointer->wanted) {
                        pthread_cond_wait(&checkpointer->condition, &checkpointer->mutex);
                        continue;
                }
                checkpointer->wanted = false;
                pthread_mutex_unlock(&checkpointer->mutex);
                checkpoint(checkpointer->database);
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

int checkpointer_new(const char *path, struct checkpointer **ret)
{
        struct checkpointer *checkpointer = calloc(1, sizeof(*checkpointer));
        int r;

        if (!checkpointer)
                return -ENOMEM;
        pthread_mutex_init(&checkpointer->mutex, NULL);
        pthread_cond_init(&checkpointer->condition, NULL);
        r = ledger_errno(NULL, sqlite3_open_v2(path, &checkpointer->database,
                                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL));
        if (r >= 0)
                r = thread_start(checkpointer);
        if (r < 0) {
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
        pthread_cond_signal(&checkpointer->condition);
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
