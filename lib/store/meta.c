/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records about the store as a whole: one that says what the content belongs to, and one a stream that says
 * how far it has come. Both are numbers and two strings, under a checksum.
 */
#include "store/meta.h"

#include <errno.h>
#include <string.h>

#include "object/identity.h"
#include "store/disk/entry.h"
#include "store/disk/generation.h"
#include "store/internal.h"
#include "store/record.h"

#define META_KEY        "meta"
#define EPOCH_KEY       "epoch"
#define POSITION_PREFIX "position/"
#define STRINGS         2

struct header {
        uint64_t checksum; /* over everything after this field */
        uint64_t schema, mark, sequence;
        uint32_t string_size[STRINGS]; /* their bytes follow, each with a NUL */
};

static uint64_t meta_checksum(const void *record, size_t size)
{
        return XXH3_64bits((const char *)record + sizeof(uint64_t), size - sizeof(uint64_t));
}

static int write_meta_record(struct store *store, MDB_val *key, struct header *header,
                             const char *const string[STRINGS])
{
        _cleanup_text_ struct text record = TEXT_EMPTY;
        MDB_val value;
        uint64_t sum;
        int r = store_begin(store);

        if (r < 0)
                return r;
        header->schema = STORE_SCHEMA;
        for (size_t i = 0; i < STRINGS; i++)
                header->string_size[i] = (uint32_t)strlen(string[i]);
        text_append(&record, header, sizeof(*header));
        for (size_t i = 0; i < STRINGS; i++)
                text_append(&record, string[i], strlen(string[i]) + 1);
        if (record.failed)
                return -ENOMEM;
        sum = meta_checksum(record.data, record.size);
        memcpy(record.data, &sum, sizeof(sum));
        value = (MDB_val){record.size, record.data};
        return store_errno(mdb_put(store->transaction, store->table[TABLE_META], key, &value, 0));
}

/* -ESTALE: of another schema; the header says which. */
static int read_record(struct store *store, MDB_txn *transaction, MDB_val *key, struct header *ret_header,
                       char *ret[STRINGS])
{
        struct header header;
        char *copy[STRINGS] = {NULL, NULL};
        const char *string;
        size_t expected = sizeof(header);
        MDB_val value;
        int r = store_errno(mdb_get(transaction, store->table[TABLE_META], key, &value));

        if (r < 0)
                return r;
        if (value.mv_size < sizeof(header))
                return -EBADMSG;
        memcpy(&header, value.mv_data, sizeof(header));
        if (meta_checksum(value.mv_data, value.mv_size) != header.checksum)
                return -EBADMSG;
        *ret_header = header;
        if (header.schema != STORE_SCHEMA)
                return -ESTALE;
        for (size_t i = 0; i < STRINGS; i++)
                expected += (size_t)header.string_size[i] + 1;
        if (expected != value.mv_size)
                return -EBADMSG;
        string = (const char *)value.mv_data + sizeof(header);
        for (size_t i = 0; i < STRINGS; i++) {
                copy[i] = strdup(string);
                string += header.string_size[i] + 1;
        }
        if (!copy[0] || !copy[1]) {
                free(copy[0]);
                free(copy[1]);
                return -ENOMEM;
        }
        memcpy(ret, copy, sizeof(copy));
        return 0;
}

static int read_meta(struct store *store, MDB_val *key, struct header *ret_header, char *ret[STRINGS])
{
        int r = store_begin(store);

        return r < 0 ? r : read_record(store, store->transaction, key, ret_header, ret);
}

/* ---- what the content belongs to */

static MDB_val meta_key(void)
{
        static char name[] = META_KEY;

        return (MDB_val){sizeof(name) - 1, name};
}

int store_meta_set(struct store *store, const struct store_meta *meta)
{
        const char *const string[STRINGS] = {meta->cluster, meta->scope};
        struct header header = {.mark = meta->mark, .sequence = store->sequence};
        MDB_val key = meta_key();

        return write_meta_record(store, &key, &header, string);
}

int meta_read(struct store *store, struct store_meta *ret, uint64_t *ret_schema)
{
        struct header header = {0};
        char *string[STRINGS];
        MDB_val key = meta_key();
        int r = read_meta(store, &key, &header, string);

        *ret_schema = header.schema;
        if (r < 0)
                return r;
        *ret = (struct store_meta){string[0], string[1], header.mark, header.sequence};
        return 0;
}

int store_meta_get(struct store *store, struct store_meta *ret)
{
        uint64_t schema;

        return meta_read(store, ret, &schema);
}

void store_meta_done(struct store_meta *meta)
{
        free(meta->cluster);
        free(meta->scope);
        *meta = (struct store_meta){0};
}

/* ---- since when its versions can be compared */

static MDB_val epoch_key(void)
{
        static char name[] = EPOCH_KEY;

        return (MDB_val){sizeof(name) - 1, name};
}

int store_epoch_set(struct store *store, const struct store_epoch *epoch)
{
        const char *const string[STRINGS] = {"", ""};
        struct header header = {.mark = epoch->restored_boottime, .sequence = epoch->epoch};
        MDB_val key = epoch_key();

        return write_meta_record(store, &key, &header, string);
}

int store_epoch_get(struct store *store, struct store_epoch *ret)
{
        struct header header;
        char *string[STRINGS];
        MDB_val key = epoch_key();
        int r = read_meta(store, &key, &header, string);

        *ret = (struct store_epoch){0};
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        *ret = (struct store_epoch){header.mark, header.sequence};
        free(string[0]);
        free(string[1]);
        return 0;
}

/* ---- how far a stream has come */

static int position_key(const char *stream, char buffer[KEY_MAX], MDB_val *ret)
{
        int length = snprintf(buffer, KEY_MAX, POSITION_PREFIX "%s", stream);

        if (length < 0 || length >= KEY_MAX)
                return -ENAMETOOLONG;
        *ret = (MDB_val){(size_t)length, buffer};
        return 0;
}

int store_position_set(struct store *store, const char *stream, const struct store_position *position)
{
        const char *const string[STRINGS] = {position->resource_version, position->basis};
        struct header header = {.mark = position->mark};
        char buffer[KEY_MAX];
        MDB_val key;
        int r = position_key(stream, buffer, &key);

        return r < 0 ? r : write_meta_record(store, &key, &header, string);
}

int store_position_get(struct store *store, const char *stream, struct store_position *ret)
{
        struct header header;
        char *string[STRINGS], buffer[KEY_MAX];
        MDB_val key;
        int r = position_key(stream, buffer, &key);

        if (r >= 0)
                r = read_meta(store, &key, &header, string);
        if (r < 0)
                return r;
        *ret = (struct store_position){string[0], string[1], header.mark};
        return 0;
}

void store_position_done(struct store_position *position)
{
        free(position->resource_version);
        free(position->basis);
        *position = (struct store_position){0};
}

/* ---- for readers */

int store_read_progress(struct store *store, const char *stream, struct store_progress *ret)
{
        struct header epoch, position;
        char buffer[KEY_MAX], *text[STRINGS], *versions[STRINGS];
        MDB_val first = epoch_key(), key;
        MDB_txn *transaction;
        int r = store_reader_follow(store, 0);

        if (r >= 0)
                r = position_key(stream, buffer, &key);
        if (r >= 0)
                r = store_errno(mdb_txn_begin(store->environment, NULL, MDB_RDONLY, &transaction));
        if (r < 0)
                return r;
        r = read_record(store, transaction, &first, &epoch, text);
        if (r >= 0) {
                free(text[0]);
                free(text[1]);
                r = read_record(store, transaction, &key, &position, versions);
        }
        mdb_txn_abort(transaction);
        if (r < 0)
                return r;
        *ret = (struct store_progress){epoch.sequence, resource_version_number(versions[0])};
        free(versions[0]);
        free(versions[1]);
        return 0;
}

/* Whether each table holds what its sum says: a record that damage has hidden shows in nothing else. */
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
