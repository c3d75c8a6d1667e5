/* SPDX-License-Identifier: Apache-2.0 */
/* How an object stands in the database, and how one knows that it is what was written. */
#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "store/internal.h"

struct header {
        uint64_t checksum; /* over the key and everything behind this field */
        uint64_t fingerprint;
        uint32_t uid_size, resource_version_size, json_size, reserved;
};
_Static_assert(sizeof(struct header) == RECORD_HEADER_SIZE, "what entry.c sums up");

static uint64_t checksum(const MDB_val *key, const void *record, size_t size)
{
        const char *covered = (const char *)record + sizeof(uint64_t);

        return XXH3_64bits_withSeed(covered, size - sizeof(uint64_t),
                                    XXH3_64bits(key->mv_data, key->mv_size));
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
        };
        char *at = out + sizeof(header);

        at = (char *)memcpy(at, object->uid, (size_t)header.uid_size + 1) + header.uid_size + 1;
        at = (char *)memcpy(at, object->resource_version, (size_t)header.resource_version_size + 1) +
             header.resource_version_size + 1;
        if (object->json_size > 0)
                memcpy(at, object->json, object->json_size);
        at[object->json_size] = '\0';
        memcpy(out, &header, sizeof(header));
        header.checksum = checksum(key, out, (size_t)(at + object->json_size + 1 - out));
        memcpy(out, &header.checksum, sizeof(header.checksum));
}

int record_decode(const MDB_val *key, const MDB_val *value, struct store_object *ret_borrowed)
{
        char *data = value->mv_data;
        struct header header;
        size_t expected;

        if (value->mv_size < sizeof(header) || key->mv_size == 0)
                return -EBADMSG;
        memcpy(&header, data, sizeof(header));
        expected = sizeof(header) + (size_t)header.uid_size + 1 + header.resource_version_size + 1 +
                   header.json_size + 1;
        if (expected != value->mv_size || checksum(key, data, value->mv_size) != header.checksum)
                return -EBADMSG;
        data += sizeof(header);
        *ret_borrowed = (struct store_object){
                .key = key->mv_data,
                .uid = data,
                .resource_version = data + header.uid_size + 1,
                .fingerprint = header.fingerprint,
                .json = data + header.uid_size + 1 + header.resource_version_size + 1,
                .json_size = header.json_size,
        };
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
