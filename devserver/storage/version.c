/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/storage/version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devserver/tree/form.h"
#include "json/json.h"

struct version *version_ref(struct version *version)
{
        if (version)
                version->references++;
        return version;
}

void version_unref(struct version *version)
{
        if (!version || --version->references > 0)
                return;
        free(version->key);
        free(version->namespace_name);
        free(version->name);
        free(version->uid);
        for (size_t i = 0; i < version->owner_count; i++)
                free(version->owner[i].uid);
        free(version->owner);
        free(version->json);
        cJSON_Delete(version->labels);
        free(version);
}

cJSON *version_parse(const struct version *version)
{
        return json_parse(version->json, version->size);
}

static const char *metadata_text(const cJSON *object, const char *name)
{
        return json_text(cJSON_GetObjectItemCaseSensitive(object, "metadata"), name);
}

static bool is_type_member(const cJSON *member)
{
        return strcmp(member->string, "apiVersion") == 0 || strcmp(member->string, "kind") == 0;
}

/* apiVersion and kind mostly come first, so that a list of built-in kinds can leave them out by an offset.
 */
static size_t bare_offset(const cJSON *object)
{
        const cJSON *first = object->child, *second = first ? first->next : NULL;
        char *a, *b;
        size_t offset;

        if (!second || !second->next || !is_type_member(first) || !is_type_member(second))
                return 0;
        a = cJSON_PrintUnformatted(first);
        b = cJSON_PrintUnformatted(second);
        offset = a && b ? strlen("{\"apiVersion\":,\"kind\":,") + strlen(a) + strlen(b) : 0;
        free(a);
        free(b);
        return offset;
}

int version_stamp(cJSON *object, uint64_t resource_version)
{
        cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        char text[24];

        snprintf(text, sizeof(text), "%llu", (unsigned long long)resource_version);
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, "resourceVersion");
        return cJSON_AddStringToObject(metadata, "resourceVersion", text) ? 0 : -ENOMEM;
}

static int read_owners(struct version *version, const cJSON *metadata)
{
        const cJSON *list = cJSON_GetObjectItemCaseSensitive(metadata, "ownerReferences"), *item;
        int count = cJSON_GetArraySize(list);

        if (count == 0)
                return 0;
        version->owner = calloc((size_t)count, sizeof(struct owner_reference));
        if (!version->owner)
                return -ENOMEM;
        cJSON_ArrayForEach(item, list)
        {
                struct owner_reference *owner = &version->owner[version->owner_count];

                owner->uid = strdup(json_text(item, "uid"));
                if (!owner->uid)
                        return -ENOMEM;
                owner->blocks = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "blockOwnerDeletion"));
                version->owner_count++;
        }
        return 0;
}

struct version *version_new(const char *key, cJSON *object, uint64_t resource_version, bool builtin)
{
        const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        struct version *version = calloc(1, sizeof(*version));

        if (!version)
                return NULL;
        version->references = 1;
        version->resource_version = resource_version;
        version->key = strdup(key);
        version->namespace_name = strdup(metadata_text(object, "namespace"));
        version->name = strdup(metadata_text(object, "name"));
        version->uid = strdup(metadata_text(object, "uid"));
        version->labels = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(metadata, "labels"), true);
        version->deleting = cJSON_HasObjectItem(metadata, "deletionTimestamp");
        form_arrange(object, builtin);
        version->builtin = builtin;
        version->json = form_print(object);
        if (!version->key || !version->namespace_name || !version->name || !version->uid || !version->json ||
            read_owners(version, metadata) < 0) {
                version_unref(version);
                return NULL;
        }
        version->size = strlen(version->json);
        version->bare_offset = bare_offset(object);
        return version;
}

struct version *version_at(const struct version *version, uint64_t resource_version)
{
        cJSON *object = version_parse(version);
        struct version *copy = NULL;

        if (object && version_stamp(object, resource_version) == 0)
                copy = version_new(version->key, object, resource_version, version->builtin);
        cJSON_Delete(object);
        return copy;
}

bool version_is_number(const char *text)
{
        return text[strspn(text, "0123456789")] == '\0';
}
