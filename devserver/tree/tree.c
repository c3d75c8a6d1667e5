/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/tree/tree.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/text.h"
#include "json/json.h"

cJSON *tree_metadata(const cJSON *object)
{
        return cJSON_GetObjectItemCaseSensitive(object, "metadata");
}

void tree_set_text(cJSON *object, const char *name, const char *text)
{
        cJSON_DeleteItemFromObjectCaseSensitive(object, name);
        cJSON_AddStringToObject(object, name, text);
}

void tree_set_integer(cJSON *object, const char *name, int64_t value)
{
        cJSON_DeleteItemFromObjectCaseSensitive(object, name);
        cJSON_AddItemToObject(object, name, json_new_integer(value));
}

void tree_set_time(cJSON *object, const char *name)
{
        time_t now = time(NULL);
        struct tm tm;
        char text[32];

        gmtime_r(&now, &tm);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
        tree_set_text(object, name, text);
}

size_t tree_finalizer_count(const cJSON *object)
{
        const cJSON *finalizer;
        size_t count = 0;

        cJSON_ArrayForEach(finalizer, cJSON_GetObjectItemCaseSensitive(tree_metadata(object), "finalizers"))
                count +=
                cJSON_IsString(finalizer) && strcmp(finalizer->valuestring, FOREGROUND_FINALIZER) == 0 ? 0
                                                                                                       : 1;
        return count;
}

void tree_copy_member(cJSON *to, const cJSON *from, const char *name)
{
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(from, name);

        cJSON_DeleteItemFromObjectCaseSensitive(to, name);
        if (value)
                cJSON_AddItemToObject(to, name, cJSON_Duplicate(value, true));
}

void tree_drop_empty_metadata(const cJSON *object)
{
        static const char *const optional[] = {"labels", "annotations", "ownerReferences", "finalizers"};

        for (size_t i = 0; i < ELEMENTS(optional); i++) {
                const cJSON *member = cJSON_GetObjectItemCaseSensitive(tree_metadata(object), optional[i]);

                if (member && !member->child)
                        cJSON_DeleteItemFromObjectCaseSensitive(tree_metadata(object), optional[i]);
        }
}

void tree_encode_secret(cJSON *secret)
{
        cJSON *data = cJSON_GetObjectItemCaseSensitive(secret, "data"), *item;
        cJSON *plain = cJSON_DetachItemFromObjectCaseSensitive(secret, "stringData");

        if (!cJSON_HasObjectItem(secret, "type"))
                cJSON_AddStringToObject(secret, "type", "Opaque");
        if (plain && !cJSON_IsObject(data))
                data = cJSON_AddObjectToObject(secret, "data");
        cJSON_ArrayForEach(item, plain)
        {
                _cleanup_text_ struct text encoded = TEXT_EMPTY;

                text_append_base64(&encoded, cJSON_IsString(item) ? item->valuestring : "");
                if (!encoded.failed)
                        tree_set_text(data, item->string, encoded.data ? encoded.data : "");
        }
        cJSON_Delete(plain);
}

static void new_uid(char uid[40])
{
        unsigned char b[16];

        if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
                memset(b, 0, sizeof(b));
        b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
        b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
        snprintf(uid, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
                 b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

void tree_set_uid(cJSON *metadata)
{
        char uid[40];

        new_uid(uid);
        tree_set_text(metadata, "uid", uid);
}
