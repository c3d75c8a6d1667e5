/* SPDX-License-Identifier: Apache-2.0 */
/* Generations on disk and the LMDB environment of one of them. */
#include "store/disk/generation.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/text.h"
#include "os/file.h"
#include "store/writer.h"

#define READERS_MAX 256
#define LOCK_SIZE   32768               /* more than that many readers need */
#define GRAIN       ((size_t)64 * 1024) /* of pages, however large they are */
#define SPACE_STEP  (2 * (uint64_t)STORE_BATCH_BYTES)

static const char *const table_name[TABLE_COUNT] = {
        [TABLE_OBJECTS] = "objects",
        [TABLE_MARKS] = "marks",
        [TABLE_TOMBSTONES] = "tombstones",
        [TABLE_DIRTY] = "dirty",
        [TABLE_DIRTY_INDEX] = "dirty_index",
        [TABLE_QUESTIONS] = "questions",
        [TABLE_OWNERS] = "owners",
        [TABLE_BURIED] = "buried",
        [TABLE_META] = "meta",
};

int store_errno(int code)
{
        switch (code) {
        case MDB_SUCCESS:
                return 0;
        case MDB_NOTFOUND:
                return -ENOENT;
        case MDB_MAP_FULL:
        case MDB_TXN_FULL:
                return -ENOSPC;
        case MDB_CORRUPTED:
        case MDB_PAGE_NOTFOUND:
        case MDB_INVALID:
        case MDB_PANIC:
        case MDB_VERSION_MISMATCH:
        case MDB_INCOMPATIBLE:
        case MDB_KEYEXIST: /* after all others, as far as we know (store_put) */
        case MDB_BAD_TXN:
        case MDB_CURSOR_FULL:
                return -EBADMSG;
        case MDB_READERS_FULL:
                return -EAGAIN;
        case MDB_BAD_VALSIZE:
                return -ENAMETOOLONG;
        default:
                return code > 0 ? -code : -EIO;
        }
}

/* ---- CURRENT */

static char *current_path(const char *folder, const char *suffix)
{
        return format_string("%s/CURRENT%s", folder, suffix);
}

int current_read(const char *folder, uint64_t *ret_generation, char ret_state[CURRENT_STATE_SIZE])
{
        _cleanup_free_ char *path = current_path(folder, "");
        _cleanup_fclose_ FILE *file = NULL;
        char state[CURRENT_STATE_SIZE];
        uint64_t generation;

        if (!path)
                return -ENOMEM;
        file = fopen(path, "re");
        if (!file && errno == ENOENT) {
                *ret_generation = 0;
                return 0;
        }
        if (!file)
                return -errno;
        if (fscanf(file, "%" SCNu64 " %39s", &generation, state) != 2 || generation == 0)
                return -EBADMSG;
        *ret_generation = generation;
        if (ret_state)
                memcpy(ret_state, state, sizeof(state));
        return 0;
}

int current_write(const char *folder, uint64_t generation, const char *state)
{
        const struct file_rules rules = {.mode = 0600, .durable = true};
        _cleanup_free_ char *path = current_path(folder, ""), *temporary = current_path(folder, ".new");
        char line[CURRENT_STATE_SIZE + 32];

        if (!path || !temporary)
                return -ENOMEM;
        snprintf(line, sizeof(line), "%" PRIu64 " %s\n", generation, state);
        return file_replace(path, temporary, line, strlen(line), &rules);
}

/* ---- the environment */

static int open_tables(struct store *store)
{
        MDB_txn *transaction;
        int r = store_errno(
                mdb_txn_begin(store->environment, NULL, store->writer ? 0 : MDB_RDONLY, &transaction));

        if (r < 0)
                return r;
        for (size_t i = 0; i < TABLE_COUNT && r >= 0; i++)
                r = store_errno(mdb_dbi_open(transaction, table_name[i], store->writer ? MDB_CREATE : 0,
                                             &store->table[i]));
        if (r < 0) {
                mdb_txn_abort(transaction);
                return r;
        }
        return store_errno(mdb_txn_commit(transaction));
}

/* Access to memory that is mapped after the end of the file kills the process (SIGBUS). */
static bool file_is_whole(const struct store *store)
{
        MDB_envinfo info;
        MDB_stat stat;
        struct stat st;
        int fd;

        if (mdb_env_info(store->environment, &info) != 0 || mdb_env_stat(store->environment, &stat) != 0 ||
            mdb_env_get_fd(store->environment, &fd) != 0 || fstat(fd, &st) < 0)
                return false;
        return (uint64_t)st.st_size / stat.ms_psize > info.me_last_pgno;
}

/* LMDB maps this file: written to where a file system in memory has no room for it, it would kill us. */
static int take_lock_space(const struct store *store, const char *folder)
{
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -1;

        if (store->size_max == 0)
                return 0;
        path = format_string("%s/lock.mdb", folder);
        if (!path)
                return -ENOMEM;
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        return fd < 0 ? -errno : -posix_fallocate(fd, 0, LOCK_SIZE);
}

int environment_open(struct store *store, uint64_t generation)
{
        unsigned flags = MDB_NOTLS | (store->writer ? MDB_NOSYNC | MDB_NOMETASYNC : MDB_RDONLY);
        int r;
        _cleanup_free_ char *path = format_string("%s/%" PRIu64, store->folder, generation);

        if (!path)
                return -ENOMEM;
        if (store->writer && mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;
        r = store->writer ? take_lock_space(store, path) : 0;
        if (r >= 0)
                r = store_errno(mdb_env_create(&store->environment));
        if (r < 0)
                return r;
        mdb_env_set_maxdbs(store->environment, TABLE_COUNT);
        mdb_env_set_maxreaders(store->environment, READERS_MAX);
        r = store_errno(mdb_env_set_mapsize(
                store->environment,
                store->size_max > 0 ? (store->size_max + GRAIN - 1) / GRAIN * GRAIN : MAP_SIZE));
        if (r >= 0)
                r = store_errno(mdb_env_open(store->environment, path, flags, 0600));
        if (r >= 0 && !file_is_whole(store))
                r = -EBADMSG;
        if (r >= 0 && store->writer)
                r = store_errno(mdb_reader_check(store->environment, NULL));
        if (r >= 0)
                r = open_tables(store);
        if (r < 0) {
                environment_close(store);
                return r;
        }
        store->generation = generation;
        return 0;
}

static uint64_t end_of_file(const struct store *store, int *ret_fd)
{
        MDB_envinfo info;
        MDB_stat stat;

        if (mdb_env_info(store->environment, &info) != 0 || mdb_env_stat(store->environment, &stat) != 0 ||
            mdb_env_get_fd(store->environment, ret_fd) != 0)
                return 0;
        return ((uint64_t)info.me_last_pgno + 1) * stat.ms_psize;
}

/* A list without end must not take the last place of a disk from others who share it. A store that does not
 * grow is written to the last. */
bool disk_has_room(int fd, uint64_t size)
{
        struct statvfs disk;
        uint64_t reserve;

        if (fstatvfs(fd, &disk) < 0)
                return true;
        reserve = (uint64_t)disk.f_blocks * disk.f_frsize / STORE_RESERVE_PART;
        if (reserve > STORE_RESERVE_MAX)
                reserve = STORE_RESERVE_MAX;
        return (uint64_t)disk.f_bavail * disk.f_frsize >= reserve + size;
}

static int look_for_room(struct store *store)
{
        int fd = -1;
        uint64_t end = end_of_file(store, &fd);

        if (store->looked_at == 0)
                store->looked_at = end;
        if (end < store->looked_at + SPACE_STEP)
                return 0;
        if (!disk_has_room(fd, SPACE_STEP))
                return -ENOSPC;
        store->looked_at = end;
        return 0;
}

/* Page by page a file system finds blocks for a file that grows (of writing it to ext4, a third). Small
 * stores take none ahead, and where it cannot be done the file grows as ever. */
static void take_space(struct store *store)
{
        int fd = -1;
        uint64_t end = end_of_file(store, &fd);

        if (store->space < end)
                store->space = end;
        if (end >= SPACE_STEP && store->space < end + SPACE_STEP &&
            fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)store->space, (off_t)SPACE_STEP) == 0)
                store->space += SPACE_STEP;
}

int store_begin(struct store *store)
{
        assert(store->writer);
        if (store->transaction)
                return 0;
        if (store->stopped)
                return -ENOSPC;
        if (store->size_max == 0) {
                int r = look_for_room(store);

                if (r < 0)
                        return r;
                if (store->in_order)
                        take_space(store);
        }
        return store_errno(mdb_txn_begin(store->environment, NULL, 0, &store->transaction));
}

static int bytes_used(const struct store *store, uint64_t *ret)
{
        MDB_stat stat;
        int r = 0;

        *ret = 0;
        for (size_t i = 0; i < TABLE_COUNT && r >= 0; i++) {
                r = store_errno(mdb_stat(store->transaction, store->table[i], &stat));
                if (r >= 0)
                        *ret += (uint64_t)stat.ms_psize *
                                (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages);
        }
        return r;
}

int environment_room(struct store *store, uint64_t *ret)
{
        uint64_t used, size = store->size_max > 0 ? store->size_max : MAP_SIZE, end;
        struct statvfs disk;
        int fd = -1, r = store_begin(store);

        if (r >= 0)
                r = bytes_used(store, &used);
        if (r < 0)
                return r;
        *ret = size > used ? size - used : 0;
        if (store->size_max > 0)
                return 0;
        end = end_of_file(store, &fd);
        if (fstatvfs(fd, &disk) < 0)
                return -errno;
        size = (uint64_t)disk.f_bavail * disk.f_frsize + (end > used ? end - used : 0);
        if (*ret > size)
                *ret = size;
        return 0;
}

/* Makes the file longer, and never shorter: another process may have written after our end meanwhile
 * (previous.h). */
static int lengthen(int fd, off_t from, off_t to)
{
        if (fallocate(fd, 0, from, to - from) == 0)
                return 0;
        return errno != EOPNOTSUPP || ftruncate(fd, to) < 0 ? -errno : 0;
}

/* Pages at the end that were taken and given back in one transaction are never written, and nothing refers
 * to them; but a process that opens the file takes one that lacks them for damaged (file_is_whole()). */
static int make_whole(const struct store *store)
{
        int fd = -1;
        uint64_t end = end_of_file(store, &fd);
        struct stat st;

        if (fd < 0)
                return 0;
        if (fstat(fd, &st) < 0)
                return -errno;
        return (uint64_t)st.st_size < end ? lengthen(fd, st.st_size, (off_t)end) : 0;
}

/* LMDB reports a write that was cut short, as the last one on a full disk is, as one of a broken disk. */
int environment_commit(struct store *store, MDB_txn *transaction)
{
        int fd, r = store_errno(mdb_txn_commit(transaction));
        struct statvfs disk;

        if (r == -EIO && mdb_env_get_fd(store->environment, &fd) == 0 && fstatvfs(fd, &disk) == 0 &&
            disk.f_bavail == 0)
                return -ENOSPC;
        return r < 0 ? r : make_whole(store);
}

void environment_close(struct store *store)
{
        if (store->transaction)
                mdb_txn_abort(store->transaction);
        store->transaction = NULL;
        store->in_order = false;
        if (store->environment)
                mdb_env_close(store->environment);
        store->environment = NULL;
        store->generation = store->space = store->looked_at = 0;
}
