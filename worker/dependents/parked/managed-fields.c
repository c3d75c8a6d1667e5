/* SPDX-License-Identifier: Apache-2.0 */
/* See managed-fields.h. The format is fieldsV1, as structured-merge-diff writes it. */
#include "worker/dependents/parked/managed-fields.h"

#include <errno.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/cleanup.h"
#include "object/bookkeeping.h"
#include "json/json.h"

/* Counts work: a tenant writes both the lists and the keys that are looked for in them, and must not hold up a worker. */
struct picking {
        size_t steps; /* members that were looked at, and bytes that were compared */
};

#define STEPS_MAX 50000000 /* well below a second */

static int pick(const cJSON *value, const cJSON *fields, struct picking *picking, cJSON **ret);

/* "k:{...}": finds the list's element that has these members. */
static const cJSON *find_by_keys(const cJSON *list, const char *keys, struct picking *picking)
{
        _cleanup_json_ cJSON *wanted = json_parse_served(keys, strlen(keys));
        size_t count = (size_t)cJSON_GetArraySize(wanted), size = strlen(keys);
        const cJSON *item, *key;

        cJSON_ArrayForEach(item, list)
        {
                bool same = wanted != NULL;

                picking->steps += size + count * (size_t)cJSON_GetArraySize(item);
                if (picking->steps > STEPS_MAX)
                        return NULL;

                cJSON_ArrayForEach(key, wanted) same =
                        same && json_equal(key, json_member(item, key->string));
                if (same)
                        return item;
        }
        return NULL;
}

/* "v:...": finds the element of a set. */
static const cJSON *find_by_value(const cJSON *list, const char *text, struct picking *picking)
{
        _cleanup_json_ cJSON *wanted = json_parse_served(text, strlen(text));
        size_t size = strlen(text);
        const cJSON *item;

        cJSON_ArrayForEach(item, list)
        {
                picking->steps += size;
                if (picking->steps > STEPS_MAX)
                        return NULL;
                if (wanted && json_equal(item, wanted))
                        return item;
        }
        return NULL;
}

/* The key members belong to the element, whichever manager wrote them. */
static void add_keys(cJSON *element, const char *keys)
{
        _cleanup_json_ cJSON *wanted = json_parse_served(keys, strlen(keys));
        const cJSON *key;

        cJSON_ArrayForEach(key, wanted) if (cJSON_IsObject(element) && !json_member(element, key->string))
                cJSON_AddItemToObject(element, key->string, cJSON_Duplicate(key, true));
}

static const cJSON *find_value(const cJSON *value, const struct json_names *members, const char *name,
                               struct picking *picking)
{
        if (strncmp(name, "f:", 2) == 0)
                return json_names_find(members, name + 2);
        if (!cJSON_IsArray(value))
                return NULL;
        if (strncmp(name, "k:", 2) == 0)
                return find_by_keys(value, name + 2, picking);
        return strncmp(name, "v:", 2) == 0 ? find_by_value(value, name + 2, picking) : NULL;
}

static int pick_member(cJSON *picked, const cJSON *from, const cJSON *field, struct picking *picking)
{
        const char *name = field->string;
        cJSON *part;
        int r = pick(from, field, picking, &part);

        if (r < 0)
                return r;
        if (strncmp(name, "k:", 2) == 0)
                add_keys(part, name + 2);
        if (cJSON_IsArray(picked))
                cJSON_AddItemToArray(picked, part);
        else
                cJSON_AddItemToObject(picked, name + 2, part);
        return 0;
}

static int pick_members(cJSON *picked, const cJSON *value, const cJSON *fields, struct picking *picking)
{
        struct json_names members;
        int r = json_names_sort(value, &members);

        for (const cJSON *field = fields->child; field && r >= 0; field = field->next) {
                const cJSON *from =
                        field->string ? find_value(value, &members, field->string, picking) : NULL;

                if (picking->steps > STEPS_MAX)
                        r = -E2BIG;
                else if (from)
                        r = pick_member(picked, from, field, picking);
        }
        json_names_done(&members);
        return r;
}

static int pick(const cJSON *value, const cJSON *fields, struct picking *picking, cJSON **ret)
{
        bool is_list = cJSON_IsArray(value);
        int r = 0;

        /* This is a leaf, or it is owned as a whole. */
        if (!fields->child || (!cJSON_IsObject(value) && !is_list)) {
                *ret = cJSON_Duplicate(value, true);
                return *ret ? 0 : -ENOMEM;
        }
        /* Elements are found one by one: more of them would hold up the worker. */
        if (is_list &&
            (cJSON_GetArraySize(value) > MANAGED_LIST_MAX || cJSON_GetArraySize(fields) > MANAGED_LIST_MAX))
                return -E2BIG;
        *ret = is_list ? cJSON_CreateArray() : cJSON_CreateObject();
        r = *ret ? pick_members(*ret, value, fields, picking) : -ENOMEM;
        if (r < 0) {
                cJSON_Delete(*ret);
                *ret = NULL;
        }
        return r;
}

static const cJSON *fields_of(const cJSON *metadata, const char *manager)
{
        const cJSON *entry;

        cJSON_ArrayForEach(entry, json_member(metadata, "managedFields"))
        {
                const char *name = json_text_of(entry, "manager");
                const char *operation = json_text_of(entry, "operation");

                if (name && operation && strcmp(name, manager) == 0 && strcmp(operation, "Apply") == 0 &&
                    !json_member(entry, "subresource"))
                        return json_member(entry, "fieldsV1");
        }
        return NULL;
}

static void copy_identity(cJSON *body, const cJSON *object, const char *key)
{
        cJSON *value = cJSON_Duplicate(json_member(object, key), true);

        cJSON_DeleteItemFromObjectCaseSensitive(body, key);
        if (value)
                cJSON_AddItemToObject(body, key, value);
}

int managed_fields_body(const char *text, const char *manager, char **ret)
{
        _cleanup_json_ cJSON *object = json_parse_served(text, strlen(text)), *body = NULL;
        const cJSON *metadata = json_member(object, "metadata");
        const cJSON *fields = fields_of(metadata, manager), *duplicate = NULL;
        struct picking picking = {0};
        cJSON *own;
        int r = fields ? json_find_duplicate(fields, &duplicate) : 0;

        /* A field that occurs many times would be copied as often. */
        if (r < 0 || duplicate || !cJSON_IsObject(object) || !metadata)
                return r < 0 ? r : -EBADMSG;
        /* If no field was ours, an empty body takes away what we have added since. */
        if (fields && fields->child)
                r = pick(object, fields, &picking, &body);
        else
                body = cJSON_CreateObject();
        if (r < 0 || !cJSON_IsObject(body))
                return r < 0 ? r : -EBADMSG;
        own = json_member(body, "metadata");
        if (!own)
                own = cJSON_AddObjectToObject(body, "metadata");
        copy_identity(own, metadata, "name");
        copy_identity(own, metadata, "namespace");
        copy_identity(body, object, "apiVersion");
        copy_identity(body, object, "kind");
        *ret = cJSON_PrintUnformatted(body);
        return *ret ? 0 : -ENOMEM;
}

struct renaming {
        const char *from, *to;
        bool apply;
        struct text *out;
        size_t count, renamed;
};

/* Appends the text up to this value, and another one in its place. */
static const char *replace_value(struct renaming *renaming, const char *from, struct span value,
                                 const char *by)
{
        text_append(renaming->out, from, (size_t)(value.start - from));
        text_json_string(renaming->out, by);
        return value.start + value.size;
}

static int rename_entry(struct renaming *renaming, struct span entry)
{
        const char *end = entry.start + entry.size, *at = entry.start;
        struct span manager = {0}, operation = {0}, part = {0};
        const struct scan_wanted wanted[] = {
                {"manager", &manager}, {"operation", &operation}, {"subresource", &part}};
        bool becomes_apply, operation_first;
        int r = scan_find(entry, wanted, ELEMENTS(wanted));

        if (r < 0 || !manager.start)
                return r < 0 ? r : -EBADMSG;
        text_append_string(renaming->out, renaming->count++ > 0 ? "," : "");
        if (!bookkeeping_has_word(renaming->from, manager))
                return text_append(renaming->out, entry.start, entry.size);
        becomes_apply = renaming->apply && !part.start && operation.start;
        operation_first = becomes_apply && operation.start < manager.start;
        if (operation_first)
                at = replace_value(renaming, at, operation, "Apply");
        at = replace_value(renaming, at, manager, renaming->to);
        if (becomes_apply && !operation_first)
                at = replace_value(renaming, at, operation, "Apply");
        renaming->renamed++;
        return text_append(renaming->out, at, (size_t)(end - at));
}

int managed_fields_rename(const char *json, const char *from, const char *to, bool apply, struct text *out)
{
        _cleanup_text_ struct text list = TEXT_EMPTY;
        struct renaming renaming = {.from = from, .to = to, .apply = apply, .out = &list};
        struct scan_object object;
        struct scan_walk walk;
        int r = scan_object(json, strlen(json), &object);

        if (r < 0)
                return r;
        SCAN_ELEMENTS(walk, object.managed_fields) {
                r = rename_entry(&renaming, walk.value);
                if (r < 0)
                        return r;
        }
        r = walk.status;
        if (r < 0 || list.failed || renaming.renamed == 0)
                return r < 0 ? r : list.failed ? -ENOMEM : 0;
        text_append_string(out, ",\"managedFields\":[");
        text_append(out, list.data, list.size);
        text_append_string(out, "]");
        return out->failed ? -ENOMEM : 1;
}
