/* SPDX-License-Identifier: Apache-2.0 */
/* See managed-fields.h. The format is fieldsV1, as structured-merge-diff writes it. */
#include "worker/dependents/parked/managed-fields.h"

#include <string.h>

#include <cjson/cJSON.h>

#include "base/cleanup.h"
#include "json/json.h"

DEFINE_CLEANUP(cJSON *, cJSON_Delete);

static cJSON *pick(const cJSON *value, const cJSON *fields);

/* "k:{...}": finds the list's element that has these members. */
static const cJSON *find_by_keys(const cJSON *list, const char *keys)
{
        _cleanup_(cJSON_Delete_pointer) cJSON *wanted = json_parse(keys, strlen(keys));
        const cJSON *item, *key;

        cJSON_ArrayForEach(item, list)
        {
                bool same = wanted != NULL;

                cJSON_ArrayForEach(key, wanted) same =
                        same && json_equal(key, cJSON_GetObjectItemCaseSensitive(item, key->string));
                if (same)
                        return item;
        }
        return NULL;
}

/* "v:...": finds the element of a set. */
static const cJSON *find_by_value(const cJSON *list, const char *text)
{
        _cleanup_(cJSON_Delete_pointer) cJSON *wanted = json_parse(text, strlen(text));
        const cJSON *item;

        cJSON_ArrayForEach(item, list) if (wanted && json_equal(item, wanted)) return item;
        return NULL;
}

/* The key members belong to the element, whichever manager wrote them. */
static void add_keys(cJSON *element, const char *keys)
{
        _cleanup_(cJSON_Delete_pointer) cJSON *wanted = json_parse(keys, strlen(keys));
        const cJSON *key;

        cJSON_ArrayForEach(key, wanted) if (cJSON_IsObject(element) &&
                                            !cJSON_GetObjectItemCaseSensitive(element, key->string))
                cJSON_AddItemToObject(element, key->string, cJSON_Duplicate(key, true));
}

static void pick_member(cJSON *picked, const cJSON *value, const cJSON *field)
{
        const char *name = field->string;
        const cJSON *from = NULL;
        cJSON *part;

        if (strncmp(name, "f:", 2) == 0)
                from = cJSON_GetObjectItemCaseSensitive(value, name + 2);
        else if (strncmp(name, "k:", 2) == 0)
                from = find_by_keys(value, name + 2);
        else if (strncmp(name, "v:", 2) == 0)
                from = find_by_value(value, name + 2);
        if (!from)
                return;
        part = pick(from, field);
        if (strncmp(name, "k:", 2) == 0)
                add_keys(part, name + 2);
        if (cJSON_IsArray(picked))
                cJSON_AddItemToArray(picked, part);
        else
                cJSON_AddItemToObject(picked, name + 2, part);
}

static cJSON *pick(const cJSON *value, const cJSON *fields)
{
        const cJSON *field;
        cJSON *picked;

        /* This is a leaf, or it is owned as a whole. */
        if (!fields->child || (!cJSON_IsObject(value) && !cJSON_IsArray(value)))
                return cJSON_Duplicate(value, true);
        picked = cJSON_IsArray(value) ? cJSON_CreateArray() : cJSON_CreateObject();
        cJSON_ArrayForEach(field, fields) if (picked && field->string && strcmp(field->string, ".") != 0)
                pick_member(picked, value, field);
        return picked;
}

static const cJSON *fields_of(const cJSON *metadata, const char *manager)
{
        const cJSON *entry;

        cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(metadata, "managedFields"))
        {
                const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "manager"));
                const char *operation =
                        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "operation"));

                if (name && operation && strcmp(name, manager) == 0 && strcmp(operation, "Apply") == 0 &&
                    !cJSON_GetObjectItemCaseSensitive(entry, "subresource"))
                        return cJSON_GetObjectItemCaseSensitive(entry, "fieldsV1");
        }
        return NULL;
}

static void copy_identity(cJSON *body, const cJSON *object, const char *key)
{
        cJSON *value = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(object, key), true);

        cJSON_DeleteItemFromObjectCaseSensitive(body, key);
        if (value)
                cJSON_AddItemToObject(body, key, value);
}

char *managed_fields_body(const char *text, const char *manager)
{
        _cleanup_(cJSON_Delete_pointer) cJSON *object = json_parse(text, strlen(text)), *body = NULL;
        const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        const cJSON *fields = fields_of(metadata, manager);
        cJSON *own;

        if (!cJSON_IsObject(object) || !metadata)
                return NULL;
        /* Where no field was ours, an empty body takes away what we have added since. */
        body = fields ? pick(object, fields) : cJSON_CreateObject();
        if (!cJSON_IsObject(body))
                return NULL;
        own = cJSON_GetObjectItemCaseSensitive(body, "metadata");
        if (!own)
                own = cJSON_AddObjectToObject(body, "metadata");
        copy_identity(own, metadata, "name");
        copy_identity(own, metadata, "namespace");
        copy_identity(body, object, "apiVersion");
        copy_identity(body, object, "kind");
        return cJSON_PrintUnformatted(body);
}
