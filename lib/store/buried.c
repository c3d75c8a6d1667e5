/* SPDX-License-Identifier: Apache-2.0 */
#include "store/buried.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "store/disk/entry.h"
#include "store/disk/generation.h"

/* "namespace/", or "/" for objects of the cluster. */
static MDB_val namespace_row(const char *key, char buffer[KEY_MAX])
{
        const char *slash = strchr(key, '/');
        size_t length = slash ? (size_t)(slash - key) : 0;

        assert(length < KEY_MAX);
        memcpy(buffer, key, length);
        buffer[length] = '/';
        return (MDB_val){length + 1, buffer};
}

/* No namespace is called so: there is no slash in it. */
static MDB_val total_row(void)
{
        static char name[] = "*";

        return (MDB_val){1, name};
}

static int buried_bytes(struct store *store, MDB_val row, uint64_t *ret)
{
        MDB_val value;
        int r = store_begin(store);

        *ret = 0;
        if (r >= 0)
                r = store_errno(mdb_get(store->transaction, store->table[TABLE_BURIED], &row, &value));
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (value.mv_size != sizeof(*ret))
                return -EBADMSG;
        memcpy(ret, value.mv_data, sizeof(*ret));
        return 0;
}

static int change_row(struct store *store, MDB_val row, uint64_t before, uint64_t after)
{
        uint64_t bytes;
        MDB_val value = {sizeof(bytes), &bytes};
        int r = buried_bytes(store, row, &bytes);

        if (r < 0)
                return r;
        if (bytes < before)
                return -EBADMSG;
        bytes = bytes - before + after;
        if (bytes > 0)
                return entry_put(store, TABLE_BURIED, &row, &value, 0);
        r = entry_remove(store, TABLE_BURIED, &row);
        return r == -ENOENT ? 0 : r;
}

int buried_change(struct store *store, const char *key, uint64_t before, uint64_t after)
{
        char buffer[KEY_MAX];
        int r = before == after ? 0 : change_row(store, namespace_row(key, buffer), before, after);

        return r < 0 || before == after ? r : change_row(store, total_row(), before, after);
}

int buried_has_room(struct store *store, const char *key, uint64_t size)
{
        char buffer[KEY_MAX];
        uint64_t room, its, all;
        int r = environment_room(store, &room);

        if (r >= 0)
                r = buried_bytes(store, namespace_row(key, buffer), &its);
        if (r >= 0)
                r = buried_bytes(store, total_row(), &all);
        if (r < 0)
                return r;
        if (room > BURIED_ROOM_MAX)
                room = BURIED_ROOM_MAX;
        return its + size <= room / BURIED_NAMESPACE_PART && all + size <= room / BURIED_STORE_PART;
}
