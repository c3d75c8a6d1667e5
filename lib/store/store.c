/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening, judging and rebuilding a store. A store is trusted when it was closed in order or was written
 * since this boot (CURRENT says so), and its meta record is whole and has our schema. NOSYNC loses nothing
 * to the death of a process, but anything to a power loss: so "clean" is written after the data is on the
 * disk, and taken back, on the disk, before the first write. A mark beside it (suspect.h) ends all trust.
 */
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/text.h"
#include "store/disk/entry.h"
#include "store/disk/generation.h"
#include "store/internal.h"
#include "store/meta.h"
#include "store/suspect.h"
#include "store/writer.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
#define BOOT_UNKNOWN "unknown"

static void read_boot_id(char boot_id[CURRENT_STATE_SIZE])
{
        _cleanup_fclose_ FILE *file = fopen(BOOT_ID_PATH, "re");

        if (!file || fscanf(file, "%39s", boot_id) != 1)
                memcpy(boot_id, BOOT_UNKNOWN, sizeof(BOOT_UNKNOWN));
}

static int mark_in_use(const struct store *store)
{
        char boot_id[CURRENT_STATE_SIZE];

        read_boot_id(boot_id);
        return current_write(store->folder, store->generation, boot_id);
}

static bool is_trusted_state(const char *state)
{
        char boot_id[CURRENT_STATE_SIZE];

        read_boot_id(boot_id);
        return strcmp(state, CURRENT_CLEAN) == 0 ||
               (strcmp(state, boot_id) == 0 && strcmp(boot_id, BOOT_UNKNOWN) != 0);
}

/* ---- judging */

static int judge_opened(struct store *store, struct error *error)
{
        struct store_meta meta;
        uint64_t schema;
        int r = meta_read(store, &meta, &schema);

        if (r == -ESTALE)
                return error_set(error, -EBADMSG, "its schema is version %llu, ours is %llu",
                                 (unsigned long long)schema, (unsigned long long)STORE_SCHEMA);
        if (r < 0)
                return error_set(error, -EBADMSG, "its meta record is missing or damaged");
        store->sequence = meta.sequence;
        store_meta_done(&meta);
        if (sums_read(store) < 0)
                return error_set(error, -EBADMSG, "the sums of its tables are missing or damaged");
        return 0;
}

/* After a crash, meta.sequence is lower than that of the entries that were written since. */
static int raise_sequence(struct store *store)
{
        MDB_cursor *cursor;
        MDB_val key, value;
        int r = store_begin(store);

        if (r >= 0)
                r = store_errno(mdb_cursor_open(store->transaction, store->table[TABLE_DIRTY], &cursor));
        if (r < 0)
                return r;
        while ((r = store_errno(mdb_cursor_get(cursor, &key, &value, MDB_NEXT))) >= 0)
                if (dirty_sequence(&key) > store->sequence)
                        store->sequence = dirty_sequence(&key);
        mdb_cursor_close(cursor);
        return r == -ENOENT ? 0 : r;
}

/* ---- generations */

static void remove_generation(const char *folder, const char *name)
{
        static const char *const file[] = {"data.mdb", "lock.mdb"};
        _cleanup_free_ char *path = NULL;

        for (size_t i = 0; i < ELEMENTS(file); i++) {
                _cleanup_free_ char *inner = format_string("%s/%s/%s", folder, name, file[i]);

                if (!inner)
                        return;
                (void)unlink(inner); /* what cannot be removed costs disk, nothing else; the next start tries
                                        again */
        }
        path = format_string("%s/%s", folder, name);
        if (!path)
                return;
        (void)rmdir(path);
}

static void remove_others(const char *folder, uint64_t keep)
{
        DIR *directory = opendir(folder);
        struct dirent *entry;

        if (!directory)
                return;
        while ((entry = readdir(directory))) {
                char *end;
                uint64_t generation = strtoull(entry->d_name, &end, 10);

                if (end != entry->d_name && *end == '\0' && generation != keep)
                        remove_generation(folder, entry->d_name);
        }
        closedir(directory);
}

int store_rebuild(struct store *store, struct error *error)
{
        const struct store_meta empty = {.cluster = (char[]){""}, .scope = (char[]){""}};
        uint64_t generation = store->generation, current = 0;
        int r;

        environment_close(store);
        if (current_read(store->folder, &current, NULL) >= 0 && current > generation)
                generation = current;
        generation++;
        store->sequence = 0;
        memset(store->sum, 0, sizeof(store->sum));
        store->sums_changed = true;
        store->batch_objects = store->batch_bytes = 0;
        remove_others(store->folder, current);
        r = environment_open(store, generation);
        if (r >= 0)
                r = store_meta_set(store, &empty);
        if (r >= 0)
                r = store_commit(store);
        if (r >= 0)
                r = mark_in_use(store);
        if (r < 0)
                return error_set(error, r, "a new generation in %s cannot be made: %s", store->folder,
                                 strerror(-r));
        remove_others(store->folder, generation);
        r = store_suspect_clear(store->folder);
        return r < 0 ? error_set(error, r, "the mark of suspicion in %s cannot be removed: %s",
                                 store->folder, strerror(-r))
                     : 0;
}

uint64_t store_generation(const struct store *store)
{
        return store->generation;
}

/* ---- opening */

static int lock_folder(struct store *store)
{
        _cleanup_free_ char *path = NULL;

        if (mkdir(store->folder, 0700) < 0 && errno != EEXIST)
                return -errno;
        path = format_string("%s/LOCK", store->folder);
        if (!path)
                return -ENOMEM;
        store->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (store->lock_fd < 0)
                return -errno;
        if (flock(store->lock_fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? -EBUSY : -errno;
        return 0;
}

/* Looked at before LMDB opens anything: a reader that died over these pages is not to be followed. */
static int check_suspicion(const struct store *store, struct error *error)
{
        _cleanup_free_ char *why = NULL;
        int r = store_suspect_read(store->folder, &why);

        if (r == -ENOENT)
                return 0;
        return error_set(error, -EBADMSG, "%s", r < 0 ? "it is marked as suspect" : why);
}

static int open_current(struct store *store, struct error *error)
{
        char state[CURRENT_STATE_SIZE];
        uint64_t generation = 0;
        int r = check_suspicion(store, error);

        if (r < 0)
                return r;
        r = current_read(store->folder, &generation, state);

        if (r < 0)
                return error_set(error, -EBADMSG, "its file CURRENT cannot be read");
        if (generation == 0)
                return -ENOENT;
        if (!is_trusted_state(state))
                return error_set(error, -EBADMSG, "the machine went down while it was being written");
        r = environment_open(store, generation);
        if (r == -ENOMEM || r == -EMFILE || r == -EACCES || r == -ENOSPC)
                return error_set(error, r, "%s", strerror(-r));
        if (r < 0)
                return error_set(error, -EBADMSG, "generation %llu cannot be opened",
                                 (unsigned long long)generation);
        r = judge_opened(store, error);
        if (r >= 0)
                r = raise_sequence(store);
        if (r >= 0)
                r = mark_in_use(store);
        return r < 0 && r != -EBADMSG ? error_set(error, r, "%s", strerror(-r)) : r;
}

int store_writer_new(const char *folder, bool *ret_rebuilt, struct store **ret, struct error *error)
{
        return store_writer_new_within(folder, 0, ret_rebuilt, ret, error);
}

int store_writer_new_within(const char *folder, uint64_t size_max, bool *ret_rebuilt, struct store **ret,
                            struct error *error)
{
        _cleanup_(store_free_pointer) struct store *store = calloc(1, sizeof(*store));
        struct error why = ERROR_NONE;
        bool rebuilt = false;
        int r;

        if (!store || !(store->folder = strdup(folder)))
                return error_set(error, -ENOMEM, "no memory");
        store->writer = true;
        store->size_max = size_max;
        store->lock_fd = -1;
        r = lock_folder(store);
        if (r < 0)
                return error_set(error, r, "%s: %s", folder,
                                 r == -EBUSY ? "another process writes this store" : strerror(-r));
        r = open_current(store, &why);
        if (r == -ENOENT || r == -EBADMSG) {
                rebuilt = r == -EBADMSG;
                r = store_rebuild(store, error);
        }
        if (r < 0) {
                error_set(error, r, "%s: %s", folder, error_message(&(struct error){r, why.message}));
                error_done(&why);
                return r;
        }
        if (rebuilt && error)
                *error = (struct error){0, TAKE_PTR(why.message)};
        error_done(&why);
        if (ret_rebuilt)
                *ret_rebuilt = rebuilt;
        *ret = TAKE_PTR(store);
        return 0;
}

/* The only place where the store waits for its data to be on the disk, at the end of a process. A store
 * whose data cannot be brought there is not called clean. */
static void close_clean(struct store *store)
{
        if (store_commit(store) >= 0 && mdb_env_sync(store->environment, 1) == 0)
                (void)current_write(store->folder, store->generation, CURRENT_CLEAN);
}

void store_free(struct store *store)
{
        if (!store)
                return;
        if (store->writer && store->environment)
                close_clean(store);
        environment_close(store);
        if (store->lock_fd >= 0)
                close(store->lock_fd);
        free(store->folder);
        free(store);
}

bool resource_version_less(const char *a, const char *b)
{
        size_t length_a = strlen(a), length_b = strlen(b);

        return length_a != length_b ? length_a < length_b : strcmp(a, b) < 0;
}
