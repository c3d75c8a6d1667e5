/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening, judging and rebuilding a store. A store is trusted when it was closed in order or was written
 * since this boot (CURRENT says so), and its meta record is whole and has our schema. NOSYNC loses nothing
 * to the death of a process, but anything to a power loss: so "clean" is written after the data is on the
 * disk, and taken back, on the disk, before the first write.
 */
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "store/internal.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
#define BOOT_UNKNOWN "unknown"

struct meta_header {
        uint64_t checksum; /* over everything behind this field */
        uint64_t schema, mark, sequence;
        uint32_t string_size[2]; /* cluster, scope; their bytes follow, each with a NUL */
};

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

static bool is_trusted(const char *state)
{
        char boot_id[CURRENT_STATE_SIZE];

        read_boot_id(boot_id);
        return strcmp(state, CURRENT_CLEAN) == 0 ||
               (strcmp(state, boot_id) == 0 && strcmp(boot_id, BOOT_UNKNOWN) != 0);
}

/* ---- the meta record */

static MDB_val meta_key(void)
{
        static char name[] = "meta";

        return (MDB_val){sizeof(name) - 1, name};
}

int store_meta_set(struct store *store, const struct store_meta *meta)
{
        _cleanup_text_ struct text record = TEXT_EMPTY;
        const char *string[2] = {meta->cluster, meta->scope};
        struct meta_header header = {
                .schema = STORE_SCHEMA,
                .mark = meta->mark,
                .sequence = store->sequence,
        };
        MDB_val key = meta_key(), value;
        uint64_t sum;
        int r = store_begin(store);

        if (r < 0)
                return r;
        for (size_t i = 0; i < ELEMENTS(string); i++)
                header.string_size[i] = (uint32_t)strlen(string[i]);
        text_append(&record, &header, sizeof(header));
        for (size_t i = 0; i < ELEMENTS(string); i++)
                text_append(&record, string[i], strlen(string[i]) + 1);
        if (record.failed)
                return -ENOMEM;
        sum = XXH3_64bits(record.data + sizeof(sum), record.size - sizeof(sum));
        memcpy(record.data, &sum, sizeof(sum));
        value = (MDB_val){record.size, record.data};
        return store_errno(mdb_put(store->transaction, store->table[TABLE_META], &key, &value, 0));
}

static int meta_read(struct store *store, struct store_meta *ret, struct meta_header *ret_header)
{
        MDB_val key = meta_key(), value;
        struct meta_header header;
        const char *string;
        uint64_t sum;
        size_t expected = sizeof(header);
        char **place[2] = {&ret->cluster, &ret->scope};
        int r = store_begin(store);

        if (r >= 0)
                r = store_errno(mdb_get(store->transaction, store->table[TABLE_META], &key, &value));
        if (r < 0)
                return r;
        if (value.mv_size < sizeof(header))
                return -EBADMSG;
        memcpy(&header, value.mv_data, sizeof(header));
        sum = XXH3_64bits((const char *)value.mv_data + sizeof(sum), value.mv_size - sizeof(sum));
        if (sum != header.checksum)
                return -EBADMSG;
        *ret_header = header;
        if (header.schema != STORE_SCHEMA)
                return -ESTALE;
        for (size_t i = 0; i < ELEMENTS(place); i++)
                expected += (size_t)header.string_size[i] + 1;
        if (expected != value.mv_size)
                return -EBADMSG;
        string = (const char *)value.mv_data + sizeof(header);
        *ret = (struct store_meta){.mark = header.mark, .sequence = header.sequence};
        for (size_t i = 0; i < ELEMENTS(place); i++) {
                *place[i] = strdup(string);
                string += header.string_size[i] + 1;
        }
        if (!ret->cluster || !ret->scope) {
                store_meta_done(ret);
                return -ENOMEM;
        }
        return 0;
}

void store_meta_done(struct store_meta *meta)
{
        free(meta->cluster);
        free(meta->scope);
        *meta = (struct store_meta){0};
}

int store_meta_get(struct store *store, struct store_meta *ret)
{
        struct meta_header header;

        return meta_read(store, ret, &header);
}

/* ---- judging */

static int judge(struct store *store, struct error *error)
{
        struct store_meta meta;
        struct meta_header header;
        int r = meta_read(store, &meta, &header);

        if (r == -ESTALE)
                return error_set(error, -EBADMSG, "its schema is version %llu, ours is %llu",
                                 (unsigned long long)header.schema, (unsigned long long)STORE_SCHEMA);
        if (r < 0)
                return error_set(error, -EBADMSG, "its meta record is missing or damaged");
        store->sequence = meta.sequence;
        store_meta_done(&meta);
        return 0;
}

/* A crash leaves meta.sequence behind the entries that were written since. */
static int raise_sequence(struct store *store)
{
        MDB_cursor *cursor;
        MDB_val key, value;
        int r = store_begin(store);

        if (r >= 0)
                r = store_errno(mdb_cursor_open(store->transaction, store->table[TABLE_DIRTY], &cursor));
        if (r < 0)
                return r;
        r = store_errno(mdb_cursor_get(cursor, &key, &value, MDB_LAST));
        if (r >= 0 && key.mv_size == 8) {
                uint64_t last = 0;

                for (size_t i = 0; i < 8; i++)
                        last = last << 8 | ((const unsigned char *)key.mv_data)[i];
                if (last > store->sequence)
                        store->sequence = last;
        }
        mdb_cursor_close(cursor);
        return r == -ENOENT ? 0 : r;
}

/* ---- generations */

static void remove_generation(const char *folder, const char *name)
{
        static const char *const file[] = {"data.mdb", "lock.mdb"};
        _cleanup_free_ char *path = NULL;

        for (size_t i = 0; i < ELEMENTS(file); i++) {
                _cleanup_free_ char *inner = NULL;

                if (asprintf(&inner, "%s/%s/%s", folder, name, file[i]) < 0) {
                        inner = NULL;
                        return;
                }
                (void)unlink(inner); /* what cannot be removed costs disk, nothing else; the next start tries
                                        again */
        }
        if (asprintf(&path, "%s/%s", folder, name) < 0) {
                path = NULL;
                return;
        }
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
        return 0;
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
        if (asprintf(&path, "%s/LOCK", store->folder) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        store->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (store->lock_fd < 0)
                return -errno;
        if (flock(store->lock_fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? -EBUSY : -errno;
        return 0;
}

static int open_current(struct store *store, struct error *error)
{
        char state[CURRENT_STATE_SIZE];
        uint64_t generation = 0;
        int r = current_read(store->folder, &generation, state);

        if (r < 0)
                return error_set(error, -EBADMSG, "its file CURRENT cannot be read");
        if (generation == 0)
                return -ENOENT;
        if (!is_trusted(state))
                return error_set(error, -EBADMSG, "the machine went down while it was being written");
        r = environment_open(store, generation);
        if (r == -ENOMEM || r == -EMFILE || r == -EACCES || r == -ENOSPC)
                return error_set(error, r, "%s", strerror(-r));
        if (r < 0)
                return error_set(error, -EBADMSG, "generation %llu cannot be opened",
                                 (unsigned long long)generation);
        r = judge(store, error);
        if (r >= 0)
                r = raise_sequence(store);
        if (r >= 0)
                r = mark_in_use(store);
        return r < 0 && r != -EBADMSG ? error_set(error, r, "%s", strerror(-r)) : r;
}

int store_writer_new(const char *folder, bool *ret_rebuilt, struct store **ret, struct error *error)
{
        _cleanup_(store_free_pointer) struct store *store = calloc(1, sizeof(*store));
        struct error why = ERROR_NONE;
        bool rebuilt = false;
        int r;

        if (!store || !(store->folder = strdup(folder)))
                return error_set(error, -ENOMEM, "no memory");
        store->writer = true;
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
