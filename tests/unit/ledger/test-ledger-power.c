/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The power fails, in 200 places. What the ledger does to its files is recorded below SQLite; then the files
 * are made again as a disk may have them after a loss of power at a random write: everything up to the last
 * fsync of a file, and of what came later any part, torn at the sectors. Such a ledger is never taken for
 * damaged, and is what some commit has left, no older than what had reached the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ledger/ledger.h"
#include "tests/unit/ledger/ledger-folder.h"
#include "tests/unit/scribble.h"

#define ROWS             150
#define COMMITS          240
#define CHECKPOINT_EVERY 60
#define REOPEN_EVERY     100
#define SEED             UINT64_C(0x90e4)
#define SECTOR           512
#define OPERATIONS_MAX   20000
#define FILE_MAX         ((size_t)6 << 20)

/* ---- what was done to the files */

enum kind { WRITE, TRUNCATE, SYNC, REMOVE };
enum { DATABASE, LOG, JOURNAL, FILES };
static const char *const suffix[FILES] = {"", "-wal", "-journal"};

static struct operation {
        enum kind kind;
        int file;
        size_t offset, size;
        char *bytes;
} operation[OPERATIONS_MAX];
static size_t operations;
static bool recording = true;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* the checkpointer has a thread */

static int file_of(const char *name)
{
        size_t length = name ? strlen(name) : 0;

        for (int i = FILES - 1; i > 0; i--)
                if (length > strlen(suffix[i]) && strcmp(name + length - strlen(suffix[i]), suffix[i]) == 0)
                        return i;
        return DATABASE;
}

static void note(enum kind kind, int file, size_t offset, const void *bytes, size_t size)
{
        char *copy = NULL;

        if (!recording)
                return;
        if (bytes && !(copy = malloc(size + 1)))
                abort();
        if (copy)
                memcpy(copy, bytes, size);
        pthread_mutex_lock(&mutex);
        if (operations == OPERATIONS_MAX)
                abort();
        operation[operations++] = (struct operation){kind, file, offset, size, copy};
        pthread_mutex_unlock(&mutex);
}

/* ---- the usual VFS, whose files are given methods that note what they do */

static struct {
        const sqlite3_io_methods *real;
        sqlite3_io_methods noting;
} method[FILES];
static sqlite3_vfs *usual, noting;

static int number_of(const sqlite3_file *file)
{
        for (int i = 0; i < FILES; i++)
                if (file->pMethods == &method[i].noting)
                        return i;
        abort();
}

static int on_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
        int number = number_of(file);

        note(WRITE, number, (size_t)offset, bytes, (size_t)size);
        return method[number].real->xWrite(file, bytes, size, offset);
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
        int number = number_of(file);

        note(TRUNCATE, number, 0, NULL, (size_t)size);
        return method[number].real->xTruncate(file, size);
}

/* Nothing is waited for: here it is only a mark in the record. */
static int on_sync(sqlite3_file *file, int flags _unused_)
{
        note(SYNC, number_of(file), 0, NULL, 0);
        return SQLITE_OK;
}

static int on_open(sqlite3_vfs *vfs _unused_, sqlite3_filename name, sqlite3_file *file, int flags,
                   int *ret_flags)
{
        int number = file_of(name), code = usual->xOpen(usual, name, file, flags, ret_flags);

        if (code != SQLITE_OK || !name)
                return code;
        method[number].real = file->pMethods;
        method[number].noting = *file->pMethods;
        method[number].noting.xWrite = on_write;
        method[number].noting.xTruncate = on_truncate;
        method[number].noting.xSync = on_sync;
        file->pMethods = &method[number].noting;
        return code;
}

static int on_delete(sqlite3_vfs *vfs _unused_, const char *name, int sync_folder _unused_)
{
        note(REMOVE, file_of(name), 0, NULL, 0);
        return usual->xDelete(usual, name, 0);
}

/* ---- what is written: commit k touches some rows, and says so in each and in row 0 */

static struct {
        size_t at; /* how many operations there were when it returned */
} commit[COMMITS + 1];

static bool touches(unsigned k, unsigned row)
{
        return row == 0 || (row * 31 + k * 17) % 13 == 0;
}

static int put_row(struct ledger *ledger, unsigned row, unsigned k)
{
        char key[32], error[128];
        struct ledger_row new = {.key = key,
                                 .uid = (char[]){"uid"},
                                 .attempts = k,
                                 .fingerprint = k * UINT64_C(7919) + row,
                                 .next_realtime = k * 1000 + row,
                                 .next_reason = RUN_RETRY,
                                 .last_error = error};

        snprintf(key, sizeof(key), "n/object-%03u", row);
        snprintf(error, sizeof(error), "commit %u: %.*s", k, (int)(k * 7 % 90),
                 "a text that is sometimes longer, sometimes shorter, so that pages are split and joined, "
                 "and so on");
        return ledger_put(ledger, "w", &new);
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

static void checkpoint(void)
{
        sqlite3 *database;

        assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
        assert_int_equal(sqlite3_wal_checkpoint_v2(database, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL),
                         SQLITE_OK);
        sqlite3_close(database);
}

static void live(void)
{
        struct ledger *ledger = open_ledger();

        for (unsigned k = 1; k <= COMMITS; k++) {
                for (unsigned row = 0; row < ROWS; row++)
                        if (touches(k, row))
                                assert_int_equal(put_row(ledger, row, k), 0);
                assert_int_equal(ledger_commit(ledger), 0);
                commit[k].at = operations;
                if (k % CHECKPOINT_EVERY == 0)
                        checkpoint();
                if (k % REOPEN_EVERY == 0) {
                        ledger_free(ledger);
                        ledger = open_ledger();
                }
        }
        ledger_free(ledger);
}

/* ---- what a disk may have of it */

struct disk {
        struct scribble_file file[FILES];
        bool exists[FILES];
};

static void apply(struct disk *disk, const struct operation *o, size_t size)
{
        struct scribble_file *file = &disk->file[o->file];

        if (!file->bytes)
                abort();
        switch (o->kind) {
        case WRITE:
                if (o->offset + size > FILE_MAX)
                        abort();
                memcpy(file->bytes + o->offset, o->bytes, size);
                if (o->offset + size > file->size)
                        file->size = o->offset + size;
                disk->exists[o->file] = true;
                break;
        case TRUNCATE:
                if (o->size < file->size)
                        memset(file->bytes + o->size, 0, file->size - o->size);
                file->size = o->size;
                break;
        case REMOVE:
                memset(file->bytes, 0, file->size);
                file->size = 0;
                disk->exists[o->file] = false;
                break;
        case SYNC:
                break;
        }
}

/* Of what was not synced: all of it, nothing, or the first sectors. */
static void apply_perhaps(struct disk *disk, const struct operation *o, uint64_t *state)
{
        uint64_t chance = scribble_random(state) % 4;

        if (chance == 0)
                return;
        apply(disk, o, chance == 1 && o->size > SECTOR ? o->size / 2 / SECTOR * SECTOR : o->size);
}

static void make_disk(struct disk *disk, size_t cut, uint64_t *state)
{
        size_t synced[FILES] = {0};

        for (size_t i = 0; i < cut; i++)
                if (operation[i].kind == SYNC)
                        synced[operation[i].file] = i;
        for (size_t i = 0; i < cut; i++) {
                /* A removal is of the folder, which keeps its order with the files' own. */
                if (i < synced[operation[i].file] || operation[i].kind == REMOVE)
                        apply(disk, &operation[i], operation[i].size);
                else
                        apply_perhaps(disk, &operation[i], state);
        }
}

/* ---- what is found */

/* Of the last commit whose writes were all synced in the log, or are in the database. */
static unsigned durable_commit(size_t cut)
{
        unsigned k = 0;
        size_t synced = 0;

        for (size_t i = 0; i < cut; i++)
                if (operation[i].kind == SYNC && operation[i].file == LOG)
                        synced = i;
        while (k < COMMITS && commit[k + 1].at <= synced)
                k++;
        return k;
}

static unsigned last_touch(unsigned k, unsigned row)
{
        while (k > 0 && !touches(k, row))
                k--;
        return k;
}

/* 0: as it must be. */
static int judge(struct ledger *ledger, unsigned durable, unsigned latest)
{
        struct ledger_row found;
        unsigned k = 0;

        for (unsigned row = 0; row < ROWS; row++) {
                char key[32];
                unsigned expected = last_touch(k, row);
                int r;

                snprintf(key, sizeof(key), "n/object-%03u", row);
                r = ledger_get(ledger, "w", key, "uid", &found);
                if (row == 0)
                        expected = k = r >= 0 ? (unsigned)found.attempts : 0;
                if (k < durable || k > latest)
                        return 10;
                if (expected == 0 ? r != -ENOENT : r < 0)
                        return 11;
                if (expected > 0 &&
                    (found.attempts != expected || found.next_realtime != expected * 1000 + row ||
                     found.fingerprint != expected * UINT64_C(7919) + row))
                        return 12;
                if (r >= 0)
                        ledger_row_done(&found);
        }
        return 0;
}

static void test_power_is_lost(void **state)
{
        const unsigned cuts = under_valgrind() ? 20 : 200;
        unsigned lost = 0;

        (void)state;
        for (uint64_t seed = SEED; seed < SEED + cuts; seed++) {
                uint64_t random = seed;
                size_t cut = 1 + scribble_random(&random) % operations;
                unsigned latest = 0, durable = durable_commit(cut);
                struct disk disk = {0};
                struct error error = ERROR_NONE;
                struct ledger *ledger = NULL;
                char *aside = NULL;
                int verdict;

                while (latest < COMMITS && commit[latest + 1].at <= cut)
                        latest++;
                for (int i = 0; i < FILES; i++)
                        assert_non_null(disk.file[i].bytes = calloc(1, FILE_MAX));
                make_disk(&disk, cut, &random);
                for (int i = 0; i < FILES; i++) {
                        char name[160];

                        snprintf(name, sizeof(name), "%s%s", path, suffix[i]);
                        (void)unlink(name);
                        if (disk.exists[i])
                                assert_int_equal(scribble_store(name, &disk.file[i]), 0);
                        free(disk.file[i].bytes);
                }
                verdict = ledger_open(path, &ledger, &aside, &error);
                if (verdict >= 0 && aside)
                        verdict = 13;
                if (verdict == 0)
                        verdict = judge(ledger, durable, latest + 1);
                if (verdict != 0)
                        fail_msg("seed %llu, after write %zu of %zu: verdict %d %s",
                                 (unsigned long long)seed, cut, operations, verdict, error_message(&error));
                ledger_free(ledger);
                lost += latest > durable;
        }
        print_message("%zu operations, cut %u times, %u of them with commits that were not on the disk\n",
                      operations, cuts, lost);
        assert_true(lost > cuts / 4);
}

/* ---- */

static int set_up(void **state)
{
        (void)state;
        if (folder_make("power") < 0)
                return -1;
        usual = sqlite3_vfs_find(NULL);
        noting = *usual;
        noting.zName = "noting";
        noting.xOpen = on_open;
        noting.xDelete = on_delete;
        if (sqlite3_vfs_register(&noting, 1) != SQLITE_OK)
                return -1;
        live();
        recording = false;
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        for (size_t i = 0; i < operations; i++)
                free(operation[i].bytes);
        return folder_remove();
}

int main(void)
{
        const struct CMUnitTest test[] = {cmocka_unit_test(test_power_is_lost)};

        return cmocka_run_group_tests(test, set_up, tear_down);
}
