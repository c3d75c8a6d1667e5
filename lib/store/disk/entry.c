/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one way in which the writer changes a table, and what it is for: LMDB's pages carry no checksums, so
 * damage between them can hide an object or bring an old one back without a single record being wrong.
 * Therefore the number and the sum of all entries of each table are kept with every transaction, and
 * compared when a life begins (store_verify()).
 */
#include "store/disk/entry.h"

#include <errno.h>
#include <string.h>

#include "store/disk/generation.h"

#define SUMS_KEY "sums"

struct sums_record {
        uint64_t checksum; /* over everything after this field */
        struct table_sum sum[TABLE_COUNT];
};

static MDB_val sums_key(void)
{
        static char name[] = SUMS_KEY;

        return (MDB_val){sizeof(name) - 1, name};
}

bool entry_is_record(enum store_table table)
{
        return table == TABLE_OBJECTS || table == TABLE_TOMBSTONES;
}

uint64_t entry_hash(enum store_table table, const MDB_val *key, const MDB_val *value)
{
        size_t size = value->mv_size;

        if (entry_is_record(table) && size > RECORD_HEADER_SIZE)
                size = RECORD_HEADER_SIZE;
        return XXH3_64bits_withSeed(value->mv_data, size, XXH3_64bits(key->mv_data, key->mv_size));
}

/* ---- changing */

/* Most entries are new, and found to be so on the way to their place. The sum lacks the new entry still. */
static int put_entry(struct store *store, enum store_table table, MDB_val *key, MDB_val *value,
                     unsigned flags)
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
        int r = put_entry(store, table, key, &(MDB_val){value->mv_size, value->mv_data}, flags);

        if (r >= 0)
                store->sum[table].sum += hash;
        return r;
}

int entry_reserve(struct store *store, enum store_table table, MDB_val *key, size_t size, unsigned flags,
                  MDB_val *ret)
{
        MDB_val place = {size, NULL};
        int r = put_entry(store, table, key, &place, flags | MDB_RESERVE);

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
