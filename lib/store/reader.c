/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: a transaction a call, so that no reader ever keeps the writer's old pages alive. */
#include "store/reader.h"

#include <errno.h>
#include <string.h>

#include "store/disk/generation.h"
#include "store/internal.h"

int store_reader_new(const char *folder, struct store **ret)
{
        struct store *store = calloc(1, sizeof(*store));

        if (!store)
                return -ENOMEM;
        store->lock_fd = -1;
        store->folder = strdup(folder);
        if (!store->folder) {
                free(store);
                return -ENOMEM;
        }
        *ret = store;
        return 0;
}

int store_reader_follow(struct store *store, uint64_t generation)
{
        /* Before the first SYNCED the asker does not know it; CURRENT does. */
        if (generation == 0) {
                int r = current_read(store->folder, &generation, NULL);

                if (r < 0 || generation == 0)
                        return r < 0 ? r : -ENOENT;
        }
        if (store->environment && store->generation == generation)
                return 0;
        environment_close(store);
        return environment_open(store, generation);
}

int store_reader_current(struct store *store, uint64_t *ret)
{
        int r = store_reader_follow(store, 0);

        if (r >= 0)
                *ret = store->generation;
        return r;
}

int store_read_record(struct store *store, enum store_table table, MDB_val *key, struct store_object *ret)
{
        struct store_object borrowed;
        MDB_txn *transaction;
        MDB_val value;
        int r = store_errno(mdb_txn_begin(store->environment, NULL, MDB_RDONLY, &transaction));

        if (r < 0)
                return r;
        r = store_errno(mdb_get(transaction, store->table[table], key, &value));
        if (r >= 0)
                r = record_decode(key, &value, &borrowed);
        if (r >= 0)
                r = record_copy(&borrowed, true, ret);
        mdb_txn_abort(transaction);
        return r;
}

int store_read(struct store *store, uint64_t generation, const char *key, struct store_object *ret)
{
        char buffer[KEY_MAX + 1];
        MDB_val mdb_key = {strlen(key), buffer};
        int r;

        if (mdb_key.mv_size == 0 || mdb_key.mv_size > KEY_MAX)
                return -ENAMETOOLONG;
        memcpy(buffer, key, mdb_key.mv_size + 1);
        r = store_reader_follow(store, generation);
        return r < 0 ? r : store_read_record(store, TABLE_OBJECTS, &mdb_key, ret);
}

int store_read_tombstone(struct store *store, uint64_t generation, const char *key, const char *uid,
                         struct store_object *ret)
{
        char buffer[KEY_MAX];
        MDB_val mdb_key;
        int r = tombstone_key(key, uid, buffer, &mdb_key);

        if (r >= 0)
                r = store_reader_follow(store, generation);
        return r < 0 ? r : store_read_record(store, TABLE_TOMBSTONES, &mdb_key, ret);
}
