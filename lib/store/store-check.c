/* SPDX-License-Identifier: Apache-2.0 */
/* Whether each table holds what its sum says: a record that damage has hidden is missed by nothing else. */
#include "store/store-check.h"

#include <errno.h>

#include "store/disk/entry.h"
#include "store/disk/generation.h"
#include "store/record.h"

#define PROGRESS_ENTRIES 4096
#define PROGRESS_BYTES   ((size_t)32 << 20)

struct progress {
        void (*callback)(void *userdata);
        void *userdata;
        size_t entries, bytes;
};

static void progress_note(struct progress *progress, size_t bytes)
{
        progress->bytes += bytes;
        if (++progress->entries < PROGRESS_ENTRIES && progress->bytes < PROGRESS_BYTES)
                return;
        progress->entries = progress->bytes = 0;
        if (progress->callback)
                progress->callback(progress->userdata);
}

/* More entries than there should be end it: damaged pages may well lead in a circle. */
static int verify_table(struct store *store, enum store_table table, struct progress *progress)
{
        const struct table_sum *expected = &store->sum[table];
        struct table_sum found = {0};
        struct store_object object;
        MDB_val key, value;
        MDB_cursor *cursor;
        int r = store_errno(mdb_cursor_open(store->transaction, store->table[table], &cursor));

        if (r < 0)
                return r;
        r = store_errno(mdb_cursor_get(cursor, &key, &value, MDB_FIRST));
        while (r >= 0 && found.entries <= expected->entries) {
                if (entry_is_record(table) && record_decode(&key, &value, &object) < 0)
                        break;
                found.entries++;
                found.sum += entry_hash(table, &key, &value);
                progress_note(progress, value.mv_size);
                r = store_errno(mdb_cursor_get(cursor, &key, &value, MDB_NEXT));
        }
        mdb_cursor_close(cursor);
        if (r < 0 && r != -ENOENT)
                return r;
        return r >= 0 || found.entries != expected->entries || found.sum != expected->sum ? -EBADMSG : 0;
}

int store_verify(struct store *store, void (*callback)(void *userdata), void *userdata)
{
        struct progress progress = {callback, userdata, 0, 0};
        int r = store_begin(store);

        for (enum store_table table = 0; table < TABLE_COUNT && r >= 0; table++)
                if (table != TABLE_META)
                        r = verify_table(store, table, &progress);
        return r == -EINVAL ? -EBADMSG : r;
}
