/* SPDX-License-Identifier: Apache-2.0 */
/* How far each stream has come: records of the meta table, one a stream. */
#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "store/internal.h"

#define PREFIX "position/"

struct position_header {
        uint64_t checksum; /* over everything behind this field */
        uint64_t mark;
        uint32_t string_size[2]; /* resource version, basis; their bytes follow, each with a NUL */
};

static int position_key(const char *stream, char buffer[KEY_MAX], MDB_val *ret)
{
        int length = snprintf(buffer, KEY_MAX, PREFIX "%s", stream);

        if (length < 0 || length >= KEY_MAX)
                return -ENAMETOOLONG;
        *ret = (MDB_val){(size_t)length, buffer};
        return 0;
}

int store_position_set(struct store *store, const char *stream, const struct store_position *position)
{
        _cleanup_text_ struct text record = TEXT_EMPTY;
        const char *string[2] = {position->resource_version, position->basis};
        struct position_header header = {.mark = position->mark};
        char buffer[KEY_MAX];
        MDB_val key, value;
        uint64_t sum;
        int r = position_key(stream, buffer, &key);

        if (r >= 0)
                r = store_begin(store);
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

int store_position_get(struct store *store, const char *stream, struct store_position *ret)
{
        struct position_header header;
        struct store_position position = {0};
        char buffer[KEY_MAX];
        const char *string;
        MDB_val key, value;
        int r = position_key(stream, buffer, &key);

        if (r >= 0)
                r = store_begin(store);
        if (r >= 0)
                r = store_errno(mdb_get(store->transaction, store->table[TABLE_META], &key, &value));
        if (r < 0)
                return r;
        if (value.mv_size < sizeof(header))
                return -EBADMSG;
        memcpy(&header, value.mv_data, sizeof(header));
        string = (const char *)value.mv_data + sizeof(header);
        if (value.mv_size != sizeof(header) + (size_t)header.string_size[0] + header.string_size[1] + 2 ||
            XXH3_64bits((const char *)value.mv_data + sizeof(header.checksum),
                        value.mv_size - sizeof(header.checksum)) != header.checksum)
                return -EBADMSG;
        position.mark = header.mark;
        position.resource_version = strdup(string);
        position.basis = strdup(string + header.string_size[0] + 1);
        if (!position.resource_version || !position.basis) {
                store_position_done(&position);
                return -ENOMEM;
        }
        *ret = position;
        return 0;
}

void store_position_done(struct store_position *position)
{
        free(position->resource_version);
        free(position->basis);
        *position = (struct store_position){0};
}
