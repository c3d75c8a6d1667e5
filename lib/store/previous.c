/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store of one table, TABLE_OBJECTS, whose keys are key NUL uid NUL version. Several processes write it, so nothing that
 * struct store holds of its content (its sums, its batch) is used.
 */
#include "store/previous.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "os/folder.h"
#include "store/disk/generation.h"
#include "store/internal.h"

#define GENERATION 1

/* Beyond the bound: what goes can be written over only two transactions later, and an object has up to 3 MiB. */
#define SLACK ((uint64_t)4 << 20)

struct previous {
        struct store *store;
        char *kept;    /* path */
        int folder_fd; /* of it: all is opened through this, in case the path leads elsewhere meanwhile */
        char looked_at[KEY_MAX + 1]; /* the last one, by previous_sweep(); "" */
        size_t looked_at_size;
};

static int open_kept(struct previous *previous, uint64_t size_max)
{
        struct store *store = calloc(1, sizeof(*store));

        if (!store)
                return -ENOMEM;
        previous->store = store;
        store->writer = true;
        store->size_max = size_max + SLACK;
        store->lock_fd = -1;
        store->folder = format_string("/proc/self/fd/%d", previous->folder_fd);
        return store->folder ? environment_open(store, GENERATION) : -ENOMEM;
}

int previous_open(const char *folder, uint64_t size_max, struct previous **ret)
{
        struct previous *previous = calloc(1, sizeof(*previous));
        int r = 0;

        if (!previous)
                return -ENOMEM;
        previous->folder_fd = -1;
        previous->kept = format_string("%s/kept", folder);
        if (!previous->kept)
                r = -ENOMEM;
        else if (mkdir(previous->kept, 0700) < 0 && errno != EEXIST)
                r = -errno;
        if (r >= 0)
                previous->folder_fd = open(previous->kept, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (r >= 0)
                r = previous->folder_fd < 0 ? -errno : open_kept(previous, size_max);
        if (r < 0) {
                previous_close(previous);
                return r;
        }
        *ret = previous;
        return 0;
}

void previous_close(struct previous *previous)
{
        if (!previous)
                return;
        if (previous->store) {
                environment_close(previous->store);
                free(previous->store->folder);
                free(previous->store);
        }
        if (previous->folder_fd >= 0)
                close(previous->folder_fd);
        free(previous->kept);
        free(previous);
}

bool previous_is_current(const struct previous *previous)
{
        struct stat there, ours;

        return stat(previous->kept, &there) >= 0 && fstat(previous->folder_fd, &ours) >= 0 &&
               there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}

int previous_begin_anew(const char *folder)
{
        _cleanup_free_ char *kept = format_string("%s/kept", folder),
                            *aside = format_string("%s/damaged-%d", folder, (int)getpid());

        if (!kept || !aside)
                return -ENOMEM;
        if (rename(kept, aside) < 0)
                return errno == ENOENT ? 0 : -errno;
        return folder_remove(aside);
}

static int version_key(const char *key, const char *uid, const char *version, char buffer[KEY_MAX],
                       MDB_val *ret)
{
        size_t begin = strlen(key) + 1 + strlen(uid) + 1, size = begin + strlen(version);
        int r = size > KEY_MAX ? -ENAMETOOLONG : tombstone_key(key, uid, buffer, ret);

        if (r < 0)
                return r;
        buffer[begin - 1] = '\0';
        memcpy(buffer + begin, version, size - begin);
        *ret = (MDB_val){size, buffer};
        return 0;
}

/* The transaction is over in any case. */
static int end_write(struct store *store, int r)
{
        MDB_txn *transaction = store->transaction;

        store->transaction = NULL;
        if (r >= 0)
                return environment_commit(store, transaction);
        mdb_txn_abort(transaction);
        return r;
}

static int put_version(struct store *store, int folder_fd, MDB_val *key, const struct store_object *object)
{
        uint64_t room;
        MDB_val value;
        int r = record_size(object, &value.mv_size);

        if (r >= 0)
                r = environment_room(store, &room);
        if (r >= 0 && (room < value.mv_size + SLACK || !disk_has_room(folder_fd, value.mv_size + SLACK)))
                r = -ENOSPC;
        if (r >= 0)
                r = store_errno(
                        mdb_put(store->transaction, store->table[TABLE_OBJECTS], key, &value, MDB_RESERVE));
        if (r >= 0)
                record_encode(key, object, value.mv_data);
        return r;
}

static bool is_kept_version(const MDB_val *place, const char *key, const char *uid, const char *version)
{
        char buffer[KEY_MAX];
        MDB_val kept;

        return version[0] && version_key(key, uid, version, buffer, &kept) >= 0 &&
               place->mv_size == kept.mv_size && memcmp(place->mv_data, kept.mv_data, kept.mv_size) == 0;
}

static int drop_others(MDB_cursor *cursor, const char *key, const char *uid, const char *version)
{
        size_t size = strlen(key) + 1; /* with its NUL, which no other key has there */
        MDB_val place = {size, (void *)(uintptr_t)key}, value;
        int r = store_errno(mdb_cursor_get(cursor, &place, &value, MDB_SET_RANGE));

        while (r >= 0 && place.mv_size > size && memcmp(place.mv_data, key, size) == 0) {
                if (!is_kept_version(&place, key, uid, version))
                        r = store_errno(mdb_cursor_del(cursor, 0));
                if (r >= 0)
                        r = store_errno(mdb_cursor_get(cursor, &place, &value, MDB_NEXT));
        }
        return r == -ENOENT ? 0 : r;
}

static int begin_versions(struct store *store, MDB_cursor **ret)
{
        int r = store_begin(store);

        if (r >= 0)
                r = store_errno(mdb_cursor_open(store->transaction, store->table[TABLE_OBJECTS], ret));
        return r < 0 && store->transaction ? end_write(store, r) : r;
}

static int end_versions(struct store *store, MDB_cursor *cursor, int r)
{
        mdb_cursor_close(cursor);
        return end_write(store, r);
}

/* What goes makes room for what comes, and goes whether that finds room or not. */
static int drop_but(struct store *store, const char *key, const char *uid, const char *version)
{
        MDB_cursor *cursor;
        int r = begin_versions(store, &cursor);

        return r < 0 ? r : end_versions(store, cursor, drop_others(cursor, key, uid, version));
}

int previous_put(struct previous *previous, const char *key, const char *uid, const char *version,
                 const char *other_version, const char *json, size_t size)
{
        const struct store_object object = {.key = (char *)(uintptr_t)key,
                                            .uid = (char *)(uintptr_t)uid,
                                            .resource_version = (char *)(uintptr_t)version,
                                            .json = (char *)(uintptr_t)json,
                                            .json_size = size};
        struct store *store = previous->store;
        char buffer[KEY_MAX];
        MDB_val place;
        int r = version_key(key, uid, version, buffer, &place);

        if (r >= 0)
                r = drop_but(store, key, uid, other_version);
        if (r >= 0)
                r = store_begin(store);
        return r < 0 ? r : end_write(store, put_version(store, previous->folder_fd, &place, &object));
}

int previous_get(struct previous *previous, const char *key, const char *uid, const char *version,
                 char **ret)
{
        struct store_object object;
        char buffer[KEY_MAX];
        MDB_val place;
        int r = version_key(key, uid, version, buffer, &place);

        if (r >= 0)
                r = store_read_record(previous->store, TABLE_OBJECTS, &place, &object);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(object.json);
        store_object_done(&object);
        return 0;
}

/* ---- what nobody wants any more */

static bool is_wanted_place(const MDB_val *place, previous_wanted_t is_wanted, void *userdata)
{
        const char *key = place->mv_data, *uid = memchr(key, '\0', place->mv_size);
        const char *end = uid ? memchr(uid + 1, '\0', place->mv_size - (size_t)(uid + 1 - key)) : NULL;

        return end && is_wanted(key, uid + 1, userdata);
}

static int sweep_some(struct previous *previous, MDB_cursor *cursor, size_t count,
                      previous_wanted_t is_wanted, void *userdata)
{
        MDB_val place = {previous->looked_at_size, previous->looked_at}, value;
        int r = store_errno(mdb_cursor_get(cursor, &place, &value,
                                           previous->looked_at_size > 0 ? MDB_SET_RANGE : MDB_FIRST));

        for (size_t i = 0; i < count && r >= 0; i++) {
                memcpy(previous->looked_at, place.mv_data, place.mv_size);
                previous->looked_at_size = place.mv_size;
                if (!is_wanted_place(&place, is_wanted, userdata))
                        r = store_errno(mdb_cursor_del(cursor, 0));
                if (r >= 0)
                        r = store_errno(mdb_cursor_get(cursor, &place, &value, MDB_NEXT));
        }
        if (r == -ENOENT) /* from the beginning, the next time */
                previous->looked_at_size = 0;
        return r == -ENOENT ? 0 : r;
}

int previous_sweep(struct previous *previous, size_t count, previous_wanted_t is_wanted, void *userdata)
{
        MDB_cursor *cursor;
        int r = begin_versions(previous->store, &cursor);

        return r < 0 ? r
                     : end_versions(previous->store, cursor,
                                    sweep_some(previous, cursor, count, is_wanted, userdata));
}
