/* SPDX-License-Identifier: Apache-2.0 */
/* How an object is encoded in the database, and how damage is noticed. */
#include "store/record.h"

#include <errno.h>
#include <string.h>

#include "store/internal.h"

#define FLAG_HELD 1
#define FLAG_FREE 2

/* Two sums, because most who look at a record want to know which version of the object it is, and nothing of
 * the object itself, which is most of it. */
struct header {
        uint64_t checksum; /* over the key and everything after this field, up to the JSON */
        uint64_t json_checksum;
        uint64_t fingerprint;
        uint32_t uid_size, resource_version_size, json_size;
        uint32_t flags;
};
_Static_assert(sizeof(struct header) == RECORD_HEADER_SIZE, "what entry.c sums up");

static size_t identity_size(const struct header *header)
{
        return sizeof(*header) + (size_t)header->uid_size + 1 + header->resource_version_size + 1;
}

static uint64_t record_checksum(const MDB_val *key, const void *record, size_t size)
{
        const char *covered = (const char *)record + sizeof(uint64_t);

        return XXH3_64bits_withSeed(covered, size - sizeof(uint64_t),
                                    XXH3_64bits(key->mv_data, key->mv_size));
}

static uint64_t json_checksum(const struct header *header, const char *json)
{
        return XXH3_64bits_withSeed(json, (size_t)header->json_size + 1, header->fingerprint);
}

int record_size(const struct store_object *object, size_t *ret)
{
        if (object->json_size >= UINT32_MAX)
                return -EMSGSIZE;
        *ret = sizeof(struct header) + strlen(object->uid) + 1 + strlen(object->resource_version) + 1 +
               object->json_size + 1;
        return 0;
}

void record_encode(const MDB_val *key, const struct store_object *object, char *out)
{
        struct header header = {
                .fingerprint = object->fingerprint,
                .uid_size = (uint32_t)strlen(object->uid),
                .resource_version_size = (uint32_t)strlen(object->resource_version),
                .json_size = (uint32_t)object->json_size,
                .flags = (object->held ? FLAG_HELD : 0U) | (object->free ? FLAG_FREE : 0U),
        };
        char *at = out + sizeof(header), *json = out + identity_size(&header);

        at = (char *)memcpy(at, object->uid, (size_t)header.uid_size + 1) + header.uid_size + 1;
        memcpy(at, object->resource_version, (size_t)header.resource_version_size + 1);
        if (object->json_size > 0)
                memcpy(json, object->json, object->json_size);
        json[object->json_size] = '\0';
        header.json_checksum = json_checksum(&header, json);
        memcpy(out, &header, sizeof(header));
        header.checksum = record_checksum(key, out, (size_t)(json - out));
        memcpy(out, &header.checksum, sizeof(header.checksum));
}

int record_decode_identity(const MDB_val *key, const MDB_val *value, struct store_object *ret_borrowed)
{
        char *data = value->mv_data;
        struct header header;

        if (value->mv_size < sizeof(header) || key->mv_size == 0)
                return -EBADMSG;
        memcpy(&header, data, sizeof(header));
        if (identity_size(&header) + header.json_size + 1 != value->mv_size ||
            record_checksum(key, data, identity_size(&header)) != header.checksum)
                return -EBADMSG;
        *ret_borrowed = (struct store_object){
                .key = key->mv_data,
                .uid = data + sizeof(header),
                .resource_version = data + sizeof(header) + header.uid_size + 1,
                .fingerprint = header.fingerprint,
                .held = (header.flags & FLAG_HELD) != 0,
                .free = (header.flags & FLAG_FREE) != 0,
        };
        return 0;
}

static void point_at_json(const MDB_val *value, struct store_object *borrowed)
{
        struct header header;

        memcpy(&header, value->mv_data, sizeof(header));
        borrowed->json = (char *)value->mv_data + identity_size(&header);
        borrowed->json_size = header.json_size;
}

int record_decode_unchecked(const MDB_val *key, const MDB_val *value, struct store_object *ret_borrowed)
{
        int r = record_decode_identity(key, value, ret_borrowed);

        if (r >= 0)
                point_at_json(value, ret_borrowed);
        return r;
}

int record_decode(const MDB_val *key, const MDB_val *value, struct store_object *ret_borrowed)
{
        struct store_object object;
        struct header header;
        int r = record_decode_identity(key, value, &object);

        if (r < 0)
                return r;
        memcpy(&header, value->mv_data, sizeof(header));
        point_at_json(value, &object);
        if (json_checksum(&header, object.json) != header.json_checksum)
                return -EBADMSG;
        *ret_borrowed = object;
        return 0;
}

int record_copy(const struct store_object *borrowed, bool with_json, struct store_object *ret)
{
        struct store_object copy = {
                .key = strdup(borrowed->key),
                .uid = strdup(borrowed->uid),
                .resource_version = strdup(borrowed->resource_version),
                .fingerprint = borrowed->fingerprint,
                .mark = borrowed->mark,
                .held = borrowed->held,
                .free = borrowed->free,
        };

        if (with_json && (copy.json = malloc(borrowed->json_size + 1))) {
                memcpy(copy.json, borrowed->json, borrowed->json_size);
                copy.json[borrowed->json_size] = '\0';
                copy.json_size = borrowed->json_size;
        }
        if (!copy.key || !copy.uid || !copy.resource_version || (with_json && !copy.json)) {
                store_object_done(&copy);
                return -ENOMEM;
        }
        *ret = copy;
        return 0;
}

void store_object_done(struct store_object *object)
{
        free(object->key);
        free(object->uid);
        free(object->resource_version);
        free(object->json);
        *object = (struct store_object){0};
}

int tombstone_key(const char *key, const char *uid, char buffer[KEY_MAX], MDB_val *ret)
{
        size_t key_size = strlen(key), uid_size = strlen(uid);

        if (key_size == 0 || key_size + 1 + uid_size > KEY_MAX)
                return -ENAMETOOLONG;
        memcpy(buffer, key, key_size + 1);
        memcpy(buffer + key_size + 1, uid, uid_size);
        *ret = (MDB_val){key_size + 1 + uid_size, buffer};
        return 0;
}
