/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/apply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "devserver/patch.h"

/* ---- field sets */

static bool is_leaf(const cJSON *fields)
{
        return fields->child == NULL;
}

static char *member_path(const char *name)
{
        char *path;

        return asprintf(&path, "f:%s", name) < 0 ? NULL : path;
}

static char *element_path(const cJSON *element, const char *key)
{
        _cleanup_free_ char *value = NULL;
        char *path = NULL;

        if (key[0] == '\0') {
                value = cJSON_PrintUnformatted(element);
                return value && asprintf(&path, "v:%s", value) >= 0 ? path : NULL;
        }
        value = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(element, key));
        return value && asprintf(&path, "k:{\"%s\":%s}", key, value) >= 0 ? path : NULL;
}

static cJSON *fields_of(const cJSON *value, const char *name);

static cJSON *fields_of_list(const cJSON *list, const char *key)
{
        cJSON *fields = cJSON_CreateObject();
        const cJSON *element;

        cJSON_ArrayForEach(element, list)
        {
                _cleanup_free_ char *path = element_path(element, key);
                cJSON *inner = key[0] ? fields_of(element, NULL) : cJSON_CreateObject();

                if (key[0])
                        cJSON_AddItemToObject(inner, ".", cJSON_CreateObject());
                cJSON_AddItemToObject(fields, path ? path : "?", inner);
        }
        return fields;
}

static cJSON *fields_of(const cJSON *value, const char *name)
{
        const char *key = list_merge_key(name);
        const cJSON *member;
        cJSON *fields;

        if (cJSON_IsArray(value) && key && value->child)
                return fields_of_list(value, key);
        fields = cJSON_CreateObject();
        if (!cJSON_IsObject(value))
                return fields;
        cJSON_ArrayForEach(member, value)
        {
                _cleanup_free_ char *path = member_path(member->string);

                cJSON_AddItemToObject(fields, path ? path : "?", fields_of(member, member->string));
        }
        return fields;
}

static void drop(cJSON *object, const char *const *name, size_t count)
{
        for (size_t i = 0; i < count; i++)
                cJSON_DeleteItemFromObjectCaseSensitive(object, name[i]);
}

/* What identifies the object, or belongs to the server, is nobody's. */
static cJSON *owned_part(const cJSON *object)
{
        static const char *const top[] = {"apiVersion", "kind"};
        static const char *const metadata[] = {"name",
                                               "namespace",
                                               "uid",
                                               "resourceVersion",
                                               "generation",
                                               "creationTimestamp",
                                               "managedFields",
                                               "selfLink",
                                               "deletionTimestamp",
                                               "deletionGracePeriodSeconds",
                                               "generateName"};
        cJSON *part = cJSON_Duplicate(object, true), *inner;

        drop(part, top, ELEMENTS(top));
        inner = cJSON_GetObjectItemCaseSensitive(part, "metadata");
        drop(inner, metadata, ELEMENTS(metadata));
        if (inner && !inner->child)
                cJSON_DeleteItemFromObjectCaseSensitive(part, "metadata");
        return part;
}

static cJSON *fields_of_object(const cJSON *object)
{
        cJSON *part = owned_part(object), *fields = fields_of(part, NULL);

        cJSON_Delete(part);
        return fields;
}

/* ---- values by path */

static cJSON *find_element(const cJSON *list, const char *path)
{
        const char *key_end = strchr(path, ':');
        cJSON *element;

        (void)key_end;
        cJSON_ArrayForEach(element, list)
        {
                _cleanup_free_ char *own = NULL;

                if (path[0] == 'v') {
                        own = element_path(element, "");
                } else {
                        cJSON *identity = cJSON_Parse(path + 2);

                        if (identity && identity->child)
                                own = element_path(element, identity->child->string);
                        cJSON_Delete(identity);
                }
                if (own && strcmp(own, path) == 0)
                        return element;
        }
        return NULL;
}

static cJSON *value_at(const cJSON *value, const char *path)
{
        if (path[0] == 'f')
                return cJSON_GetObjectItemCaseSensitive(value, path + 2);
        return find_element(value, path);
}

/* ---- managers */

static cJSON *managers_of(cJSON *object)
{
        cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        cJSON *managers = cJSON_GetObjectItemCaseSensitive(metadata, "managedFields");

        if (!cJSON_IsArray(managers)) {
                cJSON_DeleteItemFromObjectCaseSensitive(metadata, "managedFields");
                managers = cJSON_AddArrayToObject(metadata, "managedFields");
        }
        return managers;
}

static const char *text_of(const cJSON *object, const char *name)
{
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

        return text ? text : "";
}

static bool is_entry(const cJSON *entry, const char *manager, const char *operation, const char *subresource)
{
        return strcmp(text_of(entry, "manager"), manager) == 0 &&
               strcmp(text_of(entry, "operation"), operation) == 0 &&
               strcmp(text_of(entry, "subresource"), subresource) == 0;
}

static cJSON *find_entry(cJSON *managers, const char *manager, const char *operation,
                         const char *subresource)
{
        cJSON *entry;

        cJSON_ArrayForEach(entry,
                           managers) if (is_entry(entry, manager, operation, subresource)) return entry;
        return NULL;
}

static void set_entry(cJSON *managers, const char *manager, const char *operation, const char *api_version,
                      const char *subresource, cJSON *fields)
{
        cJSON *entry = find_entry(managers, manager, operation, subresource);
        time_t now = time(NULL);
        char text[32];
        struct tm tm;

        if (entry) {
                cJSON *old = cJSON_GetObjectItemCaseSensitive(entry, "fieldsV1");

                if (cJSON_Compare(old, fields, true)) {
                        cJSON_Delete(fields);
                        return;
                }
                cJSON_DetachItemViaPointer(managers, entry);
                cJSON_Delete(entry);
        }
        gmtime_r(&now, &tm);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
        entry = cJSON_CreateObject();
        cJSON_AddStringToObject(entry, "manager", manager);
        cJSON_AddStringToObject(entry, "operation", operation);
        cJSON_AddStringToObject(entry, "apiVersion", api_version);
        cJSON_AddStringToObject(entry, "time", text);
        cJSON_AddStringToObject(entry, "fieldsType", "FieldsV1");
        cJSON_AddItemToObject(entry, "fieldsV1", fields);
        if (subresource[0])
                cJSON_AddStringToObject(entry, "subresource", subresource);
        cJSON_AddItemToArray(managers, entry);
}

/* Takes `taken` out of `fields`; what becomes empty goes. */
static void subtract(cJSON *fields, const cJSON *taken)
{
        const cJSON *path;

        cJSON_ArrayForEach(path, taken)
        {
                cJSON *own = cJSON_GetObjectItemCaseSensitive(fields, path->string);

                if (!own)
                        continue;
                if (is_leaf(path) || is_leaf(own)) {
                        cJSON_DeleteItemFromObjectCaseSensitive(fields, path->string);
                        continue;
                }
                subtract(own, path);
                if (is_leaf(own) ||
                    (own->child && strcmp(own->child->string, ".") == 0 && !own->child->next))
                        cJSON_DeleteItemFromObjectCaseSensitive(fields, path->string);
        }
}

static void add(cJSON *fields, const cJSON *more)
{
        const cJSON *path;

        cJSON_ArrayForEach(path, more)
        {
                cJSON *own = cJSON_GetObjectItemCaseSensitive(fields, path->string);

                if (own)
                        add(own, path);
                else
                        cJSON_AddItemToObject(fields, path->string, cJSON_Duplicate(path, true));
        }
}

static void drop_empty_entries(cJSON *managers)
{
        for (int i = cJSON_GetArraySize(managers) - 1; i >= 0; i--) {
                const cJSON *fields =
                        cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(managers, i), "fieldsV1");

                if (!fields || is_leaf(fields))
                        cJSON_DeleteItemFromArray(managers, i);
        }
}

static void take_from_others(cJSON *managers, const cJSON *except, const cJSON *fields)
{
        cJSON *entry;

        cJSON_ArrayForEach(entry, managers) if (entry != except)
                subtract(cJSON_GetObjectItemCaseSensitive(entry, "fieldsV1"), fields);
        drop_empty_entries(managers);
}

/* ---- updates */

/* The leaves in which the two differ, as a field set of `after`. */
static cJSON *changed_fields(const cJSON *before, const cJSON *after, const cJSON *fields)
{
        cJSON *changed = cJSON_CreateObject();
        const cJSON *path;

        cJSON_ArrayForEach(path, fields)
        {
                const cJSON *old, *new;

                if (strcmp(path->string, ".") == 0)
                        continue;
                old = before ? value_at(before, path->string) : NULL;
                new = value_at(after, path->string);
                if (old && cJSON_Compare(old, new, true))
                        continue;
                if (is_leaf(path) || !old) {
                        cJSON_AddItemToObject(changed, path->string, cJSON_Duplicate(path, true));
                } else {
                        cJSON *inner = changed_fields(old, new, path);

                        if (inner->child)
                                cJSON_AddItemToObject(changed, path->string, inner);
                        else
                                cJSON_Delete(inner);
                }
        }
        return changed;
}

/* Removed fields have no owner any more. */
static void keep_existing(cJSON *fields, const cJSON *value)
{
        cJSON *path = fields ? fields->child : NULL;

        while (path) {
                cJSON *next = path->next;
                const cJSON *inner = strcmp(path->string, ".") == 0 ? value : value_at(value, path->string);

                if (!inner)
                        cJSON_Delete(cJSON_DetachItemViaPointer(fields, path));
                else if (!is_leaf(path))
                        keep_existing(path, inner);
                path = next;
        }
}

void manage_update(const cJSON *before, cJSON *after, const char *manager, const char *api_version,
                   const char *subresource)
{
        cJSON *managers = managers_of(after), *fields = fields_of_object(after), *entry;
        cJSON *changed = changed_fields(before, after, fields);

        cJSON_ArrayForEach(entry, managers)
                keep_existing(cJSON_GetObjectItemCaseSensitive(entry, "fieldsV1"), after);
        if (changed->child) {
                cJSON *own;

                entry = find_entry(managers, manager, "Update", subresource);
                take_from_others(managers, entry, changed);
                entry = find_entry(managers, manager, "Update", subresource);
                own = entry ? cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(entry, "fieldsV1"), true)
                            : cJSON_CreateObject();
                add(own, changed);
                set_entry(managers, manager, "Update", api_version, subresource, own);
        }
        drop_empty_entries(managers);
        cJSON_Delete(changed);
        cJSON_Delete(fields);
        if (cJSON_GetArraySize(managers) == 0)
                cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(after, "metadata"),
                                                        "managedFields");
}

/* ---- apply */

static void describe_path(const char *prefix, const char *path, char *out, size_t size)
{
        if (path[0] == 'f')
                snprintf(out, size, "%s.%s", prefix, path + 2);
        else
                snprintf(out, size, "%s[%s]", prefix, path + 2);
}

static void find_conflicts(const cJSON *live, const cJSON *config, const cJSON *wanted, const cJSON *owned,
                           const char *manager, const char *prefix, cJSON *conflicts)
{
        const cJSON *path;

        cJSON_ArrayForEach(path, wanted)
        {
                const cJSON *theirs = cJSON_GetObjectItemCaseSensitive(owned, path->string), *old, *new;
                char place[512];

                if (!theirs || strcmp(path->string, ".") == 0)
                        continue;
                old = value_at(live, path->string);
                new = value_at(config, path->string);
                describe_path(prefix, path->string, place, sizeof(place));
                if (!is_leaf(path) && !is_leaf(theirs)) {
                        find_conflicts(old, new, path, theirs, manager, place, conflicts);
                } else if (cJSON_IsObject(new) && !new->child && cJSON_IsObject(old)) {
                        continue; /* an empty object claims that there is one, nothing more */
                } else if (!old || !cJSON_Compare(old, new, true)) {
                        cJSON *conflict = cJSON_CreateObject();

                        cJSON_AddStringToObject(conflict, "field", place);
                        cJSON_AddStringToObject(conflict, "manager", manager);
                        cJSON_AddItemToArray(conflicts, conflict);
                }
        }
}

/* Removes from `value` what only the manager owned and does not want any more. What the server maintains
 * inside of metadata is in nobody's set, so a member goes whole only when it is a leaf, an element, or has
 * become empty. */
static void remove_unwanted(cJSON *value, const cJSON *had, const cJSON *wanted, const cJSON *others)
{
        const cJSON *path;

        cJSON_ArrayForEach(path, had)
        {
                const cJSON *still = cJSON_GetObjectItemCaseSensitive(wanted, path->string);
                const cJSON *theirs = cJSON_GetObjectItemCaseSensitive(others, path->string);
                bool unwanted = !still && !theirs;
                cJSON *inner = value_at(value, path->string);

                if (!inner || strcmp(path->string, ".") == 0)
                        continue;
                if (!is_leaf(path) && !(unwanted && path->string[0] == 'k'))
                        remove_unwanted(inner, path, still, theirs);
                if (unwanted && (is_leaf(path) || path->string[0] == 'k' || !inner->child))
                        cJSON_Delete(cJSON_DetachItemViaPointer(value, inner));
        }
}

static cJSON *all_of_others(cJSON *managers, const cJSON *own)
{
        cJSON *all = cJSON_CreateObject(), *entry;

        cJSON_ArrayForEach(entry, managers) if (entry != own)
                add(all, cJSON_GetObjectItemCaseSensitive(entry, "fieldsV1"));
        return all;
}

static cJSON *conflicts_with(cJSON *managers, const cJSON *own, const cJSON *live, const cJSON *config,
                             const cJSON *wanted)
{
        cJSON *conflicts = cJSON_CreateArray(), *entry;

        cJSON_ArrayForEach(entry, managers) if (entry != own)
                find_conflicts(live, config, wanted, cJSON_GetObjectItemCaseSensitive(entry, "fieldsV1"),
                               text_of(entry, "manager"), "", conflicts);
        return conflicts;
}

cJSON *apply_config(const cJSON *live, const cJSON *config, const char *manager, const char *api_version,
                    const char *subresource, bool force, cJSON **ret_conflicts)
{
        cJSON *object = live ? cJSON_Duplicate(live, true) : cJSON_Duplicate(config, true);
        cJSON *managers = managers_of(object), *own = find_entry(managers, manager, "Apply", subresource);
        cJSON *wanted = fields_of_object(config),
              *conflicts = conflicts_with(managers, own, live, config, wanted);

        if (live && !force && cJSON_GetArraySize(conflicts) > 0) {
                cJSON_Delete(object);
                cJSON_Delete(wanted);
                *ret_conflicts = conflicts;
                return NULL;
        }
        cJSON_Delete(conflicts);
        if (live) {
                cJSON *others = all_of_others(managers, own), *part = owned_part(config);

                if (own)
                        remove_unwanted(object, cJSON_GetObjectItemCaseSensitive(own, "fieldsV1"), wanted,
                                        others);
                object = patch_strategic(object, part);
                cJSON_Delete(part);
                cJSON_Delete(others);
                managers = managers_of(object);
                own = find_entry(managers, manager, "Apply", subresource);
                if (force) {
                        cJSON *entry;

                        /* Only what differs changes hands; equal values are shared. */
                        cJSON_ArrayForEach(entry, managers) if (entry != own)
                        {
                                cJSON *theirs = cJSON_GetObjectItemCaseSensitive(entry, "fieldsV1");
                                cJSON *changed = changed_fields(live, object, wanted);

                                subtract(theirs, changed);
                                cJSON_Delete(changed);
                        }
                        drop_empty_entries(managers);
                }
        }
        set_entry(managers, manager, "Apply", api_version, subresource, wanted);
        return object;
}
