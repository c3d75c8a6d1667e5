/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store of one table, TABLE_OBJECTS, whose keys are key NUL uid NUL version. Several processes write it, so nothing that
 * struct store holds of its content (its sums, its batch) is used.
 */
#include "store/previous.h"

#include <errno.h>
#include <string.h>

#include "store/disk/generation.h"
#include "store/internal.h"

#define GENERATION 1
#define SLACK      ((uint64_t)256 * 1024) /* bytes that are left for LMDB's own pages */

int previous_open(const char *folder, uint64_t size_max, struct store **ret)
{
        struct store *store = calloc(1, sizeof(*store));
        int r = store ? 0 : -ENOMEM;

        if (r >= 0) {
                store->writer = true;
                store->size_max = size_max + SLACK;
                store->lock_fd = -1;
                store->folder = strdup(folder);
                r = store->folder ? environment_open(store, GENERATION) : -ENOMEM;
        }
        if (r < 0) {
                previous_close(store);
                return r;
        }
        *ret = store;
        return 0;
}

void previous_close(struct store *store)
{
        if (!store)
                return;
        environment_close(store);
        free(store->folder);
        free(store);
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

static int put_version(struct store *store, MDB_val *key, const struct store_object *object)
{
        uint64_t room;
        MDB_val value;
        int r = record_size(object, &value.mv_size);

        if (r >= 0)
                r = environment_room(store, &room);
        if (r >= 0 && room < value.mv_size + SLACK)
                r = -ENOSPC;
        if (r >= 0)
                r = store_errno(
                        mdb_put(store->transaction, store->table[TABLE_OBJECTS], key, &value, MDB_RESERVE));
        if (r >= 0)
                record_encode(key, object, value.mv_data);
        return r;
}

int previous_put(struct store *store, const char *key, const char *uid, const char *version,
                 const char *json, size_t size)
{
        const struct store_object object = {.key = (char *)(uintptr_t)key,
                                            .uid = (char *)(uintptr_t)uid,
                                            .resource_version = (char *)(uintptr_t)version,
                                            .json = (char *)(uintptr_t)json,
                                            .json_size = size};
        char buffer[KEY_MAX];
        MDB_val place;
        int r = version_key(key, uid, version, buffer, &place);

        if (r >= 0)
                r = store_begin(store);
        return r < 0 ? r : end_write(store, put_version(store, &place, &object));
}

int previous_get(struct store *store, const char *key, const char *uid, const char *version, char **ret)
{
        struct store_object object;
        char buffer[KEY_MAX];
        MDB_val place;
        int r = version_key(key, uid, version, buffer, &place);

        if (r >= 0)
                r = store_read_record(store, TABLE_OBJECTS, &place, &object);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(object.json);
        store_object_done(&object);
        return 0;
}

static bool is_kept_version(const MDB_val *place, const char *key, const char *uid, const char *version)
{
        char buffer[KEY_MAX];
        MDB_val kept;

        return version[0] && version_key(key, uid, version, buffer, &kept) >= 0 &&
               place->mv_size == kept.mv_size && memcmp(place->mv_data, kept.mv_data, kept.mv_size) == 0;
}

static int drop_others(MDB_cursor *cursor, const char *key, const char *uid, const char *version,
                       const char *other_version)
{
        size_t size = strlen(key) + 1; /* with its NUL, which no other key has there */
        MDB_val place = {size, (void *)(uintptr_t)key}, value;
        int r = store_errno(mdb_cursor_get(cursor, &place, &value, MDB_SET_RANGE));

        while (r >= 0 && place.mv_size > size && memcmp(place.mv_data, key, size) == 0) {
                if (!is_kept_version(&place, key, uid, version) &&
                    !is_kept_version(&place, key, uid, other_version))
                        r = store_errno(mdb_cursor_del(cursor, 0));
                if (r >= 0)
                        r = store_errno(mdb_cursor_get(cursor, &place, &value, MDB_NEXT));
        }
        return r == -ENOENT ? 0 : r;
}

int previous_drop(struct store *store, const char *key, const char *uid, const char *version,
                  const char *other_version)
{
        MDB_cursor *cursor;
        int r = store_begin(store);

        if (r < 0)
                return r;
        r = store_errno(mdb_cursor_open(store->transaction, store->table[TABLE_OBJECTS], &cursor));
        if (r >= 0) {
                r = drop_others(cursor, key, uid, version, other_version);
                mdb_cursor_close(cursor);
        }
        return end_write(store, r);
}
