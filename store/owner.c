/* SPDX-License-Identifier: Apache-2.0 */
/* Which owner has which objects: a key for each pair, so that an owner's are found without a walk. */
#include <errno.h>
#include <string.h>

#include "store/internal.h"

int store_owner_add(struct store *store, const char *uid, const char *key)
{
        char buffer[KEY_MAX];
        MDB_val pair, empty = {0, buffer};
        int r = tombstone_key(uid, key, buffer, &pair);

        return r < 0 ? r : entry_put(store, TABLE_OWNERS, &pair, &empty);
}

int store_owner_remove(struct store *store, const char *uid, const char *key)
{
        char buffer[KEY_MAX];
        MDB_val pair;
        int r = tombstone_key(uid, key, buffer, &pair);

        if (r >= 0)
                r = entry_remove(store, TABLE_OWNERS, &pair);
        return r == -ENOENT ? 0 : r;
}

static int visit_pair(struct store *store, MDB_txn *transaction, const MDB_val *pair, size_t prefix,
                      store_visit_t visit, void *userdata)
{
        MDB_val key = {pair->mv_size - prefix, (char *)pair->mv_data + prefix}, value;
        struct store_object object;
        int r = store_errno(mdb_get(transaction, store->table[TABLE_OBJECTS], &key, &value));

        if (r >= 0)
                r = record_decode(&key, &value, &object);
        return r < 0 ? (r == -ENOENT ? 0 : r) : visit(&object, userdata);
}

int store_visit_owned(struct store *store, const char *uid, store_visit_t visit, void *userdata)
{
        size_t prefix = strlen(uid) + 1;
        MDB_val pair = {prefix, (void *)(uintptr_t)uid}, value;
        MDB_cursor *cursor = NULL;
        MDB_txn *transaction;
        int r = store_reader_follow(store, 0);

        if (r >= 0)
                r = store_errno(mdb_txn_begin(store->environment, NULL, MDB_RDONLY, &transaction));
        if (r < 0)
                return r;
        r = store_errno(mdb_cursor_open(transaction, store->table[TABLE_OWNERS], &cursor));
        if (r >= 0)
                r = store_errno(mdb_cursor_get(cursor, &pair, &value, MDB_SET_RANGE));
        while (r >= 0 && pair.mv_size > prefix && memcmp(pair.mv_data, uid, prefix) == 0) {
                r = visit_pair(store, transaction, &pair, prefix, visit, userdata);
                if (r >= 0)
                        r = store_errno(mdb_cursor_get(cursor, &pair, &value, MDB_NEXT));
        }
        mdb_cursor_close(cursor);
        mdb_txn_abort(transaction);
        return r == -ENOENT ? 0 : r;
}

int store_visit_prefix(struct store *store, const char *prefix, store_visit_t visit, void *userdata)
{
        size_t size = strlen(prefix);
        MDB_val key = {size, (void *)(uintptr_t)prefix}, value;
        MDB_cursor *cursor = NULL;
        MDB_txn *transaction;
        int r = store_reader_follow(store, 0);

        if (r >= 0)
                r = store_errno(mdb_txn_begin(store->environment, NULL, MDB_RDONLY, &transaction));
        if (r < 0)
                return r;
        r = store_errno(mdb_cursor_open(transaction, store->table[TABLE_OBJECTS], &cursor));
        if (r >= 0)
                r = store_errno(mdb_cursor_get(cursor, &key, &value, size > 0 ? MDB_SET_RANGE : MDB_FIRST));
        while (r >= 0 && key.mv_size >= size && memcmp(key.mv_data, prefix, size) == 0) {
                struct store_object object;

                r = record_decode(&key, &value, &object);
                if (r >= 0)
                        r = visit(&object, userdata);
                if (r >= 0)
                        r = store_errno(mdb_cursor_get(cursor, &key, &value, MDB_NEXT));
        }
        mdb_cursor_close(cursor);
        mdb_txn_abort(transaction);
        return r == -ENOENT ? 0 : r;
}
