/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one way in which the writer changes a table, and what it is for: LMDB's pages carry no checksums, so
 * damage between them can hide an object or bring an old one back without a single record being wrong.
 * Therefore the number and the sum of all entries of each table are kept with every transaction, and
 * compared when a life begins (store_verify).
 */
#include <errno.h>
#include <string.h>

#include "object/hash.h"
#include "store/internal.h"

#define SUMS_KEY         "sums"
#define PROGRESS_ENTRIES 4096
#define PROGRESS_BYTES   ((size_t)32 << 20)

struct sums_record {
        uint64_t checksum; /* over everything behind this field */
        struct table_sum sum[TABLE_COUNT];
};

static MDB_val sums_key(void)
{
        static char name[] = SUMS_KEY;

        return (MDB_val){sizeof(name) - 1, name};
}

static bool holds_records(enum store_table table)
{
        return table == TABLE_OBJECTS || table == TABLE_TOMBSTONES;
}

/* Of a record its beginning, which has a checksum over the rest. */
static uint64_t entry_hash(enum store_table table, const MDB_val *key, const MDB_val *value)
{
        size_t size = value->mv_size;

        if (holds_records(table) && size > RECORD_HEADER_SIZE)
                size = RECORD_HEADER_SIZE;
        return XXH3_64bits_withSeed(value->mv_data, size, XXH3_64bits(key->mv_data, key->mv_size));
}

/* ---- changing */

/* Most entries are new, and found to be so on the way to their place. The sum lacks the new entry still. */
static int put(struct store *store, enum store_table table, MDB_val *key, MDB_val *value, unsigned flags)
{
        struct table_sum *sum = &store->sum[table];
        MDB_val place = *value;
        int code, r = store_begin(store);

        if (r < 0)
                return r;
        code = mdb_put(store->transaction, store->table[table], key, &place, flags | MDB_NOOVERWRITE);
        if (code == MDB_KEYEXIST && !(flags & MDB_APPEND)) {
                uint64_t before = entry_hash(table, key, &place);

                place = *value;
                r = store_errno(mdb_put(store->transaction, store->table[table], key, &place, flags));
                if (r >= 0)
                        sum->sum -= before;
        } else {
                r = store_errno(code);
                sum->entries += r >= 0;
        }
        if (r < 0)
                return r;
        store->sums_changed = true;
        *value = place;
        return 0;
}

int entry_put(struct store *store, enum store_table table, MDB_val *key, MDB_val *value, unsigned flags)
{
        uint64_t hash = entry_hash(table, key, value);
        int r = put(store, table, key, &(MDB_val){value->mv_size, value->mv_data}, flags);

        if (r >= 0)
                store->sum[table].sum += hash;
        return r;
}

int entry_reserve(struct store *store, enum store_table table, MDB_val *key, size_t size, unsigned flags,
                  MDB_val *ret)
{
        MDB_val place = {size, NULL};
        int r = put(store, table, key, &place, flags | MDB_RESERVE);

        if (r >= 0)
                *ret = place;
        return r;
}

void entry_filled(struct store *store, enum store_table table, const MDB_val *key, const MDB_val *value)
{
        store->sum[table].sum += entry_hash(table, key, value);
}

int entry_remove(struct store *store, enum store_table table, MDB_val *key)
{
        struct table_sum *sum = &store->sum[table];
        uint64_t before;
        MDB_val old;
        int r = store_begin(store);

        if (r >= 0)
                r = store_errno(mdb_get(store->transaction, store->table[table], key, &old));
        if (r < 0)
                return r;
        before = entry_hash(table, key, &old);
        r = store_errno(mdb_del(store->transaction, store->table[table], key, NULL));
        if (r < 0)
                return r;
        sum->sum -= before;
        sum->entries--;
        store->sums_changed = true;
        return 0;
}

/* ---- the sums */

static uint64_t sums_checksum(const struct sums_record *record)
{
        return XXH3_64bits(record->sum, sizeof(record->sum));
}

int sums_write(struct store *store)
{
        struct sums_record record = {0};
        MDB_val key = sums_key(), value = {sizeof(record), &record};
        int r;

        if (!store->sums_changed)
                return 0;
        memcpy(record.sum, store->sum, sizeof(record.sum));
        record.checksum = sums_checksum(&record);
        r = store_errno(mdb_put(store->transaction, store->table[TABLE_META], &key, &value, 0));
        if (r >= 0)
                store->sums_changed = false;
        return r;
}

int sums_read(struct store *store)
{
        struct sums_record record;
        MDB_val key = sums_key(), value;
        int r = store_begin(store);

        if (r >= 0)
                r = store_errno(mdb_get(store->transaction, store->table[TABLE_META], &key, &value));
        if (r < 0)
                return r == -ENOENT ? -EBADMSG : r;
        if (value.mv_size != sizeof(record))
                return -EBADMSG;
        memcpy(&record, value.mv_data, sizeof(record));
        if (sums_checksum(&record) != record.checksum)
                return -EBADMSG;
        memcpy(store->sum, record.sum, sizeof(store->sum));
        store->sums_changed = false;
        return 0;
}

/* ---- verifying */

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
                if (holds_records(table) && record_decode(&key, &value, &object) < 0)
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
