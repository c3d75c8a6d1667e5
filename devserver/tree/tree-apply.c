/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/tree/tree-apply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "devserver/tree/fields.h"
#include "devserver/tree/list-rule.h"
#include "json/json.h"

/* ---- managers */

static cJSON *managers_of(cJSON *object)
{
        cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        cJSON *managers = cJSON_GetObjectItemCaseSensitive(metadata, "managedFields");

        if (!cJSON_IsArray(managers)) {
                cJSON_DeleteItemFromObjectCaseSensitive(metadata, "managedFields");
                managers = cJSON_AddArrayToObject(metadata, "managedFields");
        }
        for (int i = cJSON_GetArraySize(managers) - 1; i >= 0; i--)
                if (!fields_are_valid(
                            cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(managers, i), "fieldsV1")))
                        cJSON_DeleteItemFromArray(managers, i);
        return managers;
}

static bool is_entry(const cJSON *entry, const char *manager, const char *operation, const char *subresource)
{
        return strcmp(json_text(entry, "manager"), manager) == 0 &&
               strcmp(json_text(entry, "operation"), operation) == 0 &&
               strcmp(json_text(entry, "subresource"), subresource) == 0;
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

                if (json_equal(old, fields)) {
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

static void drop_empty_entries(cJSON *managers)
{
        for (int i = cJSON_GetArraySize(managers) - 1; i >= 0; i--) {
                const cJSON *fields =
                        cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(managers, i), "fieldsV1");

                if (!fields || fields_is_leaf(fields))
                        cJSON_DeleteItemFromArray(managers, i);
        }
}

static void take_from_others(cJSON *managers, const cJSON *except, const cJSON *fields)
{
        cJSON *entry;

        cJSON_ArrayForEach(entry, managers) if (entry != except)
                fields_subtract(cJSON_GetObjectItemCaseSensitive(entry, "fieldsV1"), fields);
        drop_empty_entries(managers);
}

/* ---- updates */

void manage_update(const cJSON *before, cJSON *after, const char *manager, const char *api_version,
                   const char *subresource, struct place root)
{
        cJSON *managers = managers_of(after), *fields = fields_of_object(after, root), *entry;
        cJSON *changed = fields_changed(before, after, fields);

        cJSON_ArrayForEach(entry, managers)
                fields_keep_existing(cJSON_GetObjectItemCaseSensitive(entry, "fieldsV1"), after);
        if (changed->child) {
                cJSON *own;

                entry = find_entry(managers, manager, "Update", subresource);
                take_from_others(managers, entry, changed);
                entry = find_entry(managers, manager, "Update", subresource);
                own = entry ? cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(entry, "fieldsV1"), true)
                            : cJSON_CreateObject();
                fields_add(own, changed);
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

/* "m", or "m" with subresource "status" using example.com/v1: for an update the version is named as well. */
static char *describe_manager(const cJSON *entry)
{
        const char *subresource = json_text(entry, "subresource");
        bool is_update = strcmp(json_text(entry, "operation"), "Update") == 0;
        char *text;

        return asprintf(&text, "\"%s\"%s%s%s%s%s", json_text(entry, "manager"),
                        subresource[0] ? " with subresource \"" : "", subresource,
                        subresource[0] ? "\"" : "", is_update ? " using " : "",
                        is_update ? json_text(entry, "apiVersion") : "") < 0
                       ? NULL
                       : text;
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
                old = fields_value_at(live, path->string);
                new = fields_value_at(config, path->string);
                fields_describe(prefix, path->string, place, sizeof(place));
                if (!fields_is_leaf(path) && !fields_is_leaf(theirs)) {
                        find_conflicts(old, new, path, theirs, manager, place, conflicts);
                } else if (cJSON_IsObject(new) && cJSON_IsObject(old) &&
                           (!new->child || !fields_is_leaf(path))) {
                        continue; /* an empty object claims that there is one, nothing more */
                } else if (!old || !json_equal(old, new)) {
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
                cJSON *inner = fields_value_at(value, path->string);

                if (!inner || strcmp(path->string, ".") == 0)
                        continue;
                if (!fields_is_leaf(path) && !(unwanted && path->string[0] == 'k'))
                        remove_unwanted(inner, path, still, theirs);
                if (unwanted && (fields_is_leaf(path) || path->string[0] == 'k' || !inner->child))
                        cJSON_Delete(cJSON_DetachItemViaPointer(value, inner));
        }
}

static cJSON *all_of_others(cJSON *managers, const cJSON *own)
{
        cJSON *all = cJSON_CreateObject(), *entry;

        cJSON_ArrayForEach(entry, managers) if (entry != own)
                fields_add(all, cJSON_GetObjectItemCaseSensitive(entry, "fieldsV1"));
        return all;
}

static cJSON *conflicts_with(cJSON *managers, const cJSON *own, const cJSON *live, const cJSON *config,
                             const cJSON *wanted)
{
        cJSON *conflicts = cJSON_CreateArray(), *entry;

        cJSON_ArrayForEach(entry, managers)
        {
                _cleanup_free_ char *name = entry != own ? describe_manager(entry) : NULL;

                if (name)
                        find_conflicts(live, config, wanted,
                                       cJSON_GetObjectItemCaseSensitive(entry, "fieldsV1"), name, "",
                                       conflicts);
        }
        return conflicts;
}

static cJSON *merge(cJSON *target, const cJSON *config, struct place place);

/* Elements that are there already are merged where they are, others come at the end. */
static cJSON *merge_list(cJSON *target, const cJSON *config, struct place place,
                         const struct list_rule *rule)
{
        const cJSON *element;

        if (!cJSON_IsArray(target)) {
                cJSON_Delete(target);
                target = cJSON_CreateArray();
        }
        cJSON_ArrayForEach(element, config)
        {
                _cleanup_free_ char *path = fields_element_path(element, rule);
                cJSON *old = path ? fields_value_at(target, path) : NULL;

                if (!old)
                        cJSON_AddItemToArray(target, cJSON_Duplicate(element, true));
                else if (rule->type == LIST_MAP)
                        cJSON_ReplaceItemViaPointer(
                                target, old,
                                merge(cJSON_Duplicate(old, true), element, place_element(place)));
        }
        return target;
}

/* `config` into `target`, which is taken over: members one by one, lists by their rule, all else whole. */
static cJSON *merge(cJSON *target, const cJSON *config, struct place place)
{
        struct list_rule rule = place_list_rule(place, config);
        const cJSON *member;

        if (rule.type != LIST_ATOMIC)
                return merge_list(target, config, place, &rule);
        if (!cJSON_IsObject(config) || place_is_atomic_map(place)) {
                cJSON_Delete(target);
                return cJSON_Duplicate(config, true);
        }
        if (!cJSON_IsObject(target)) {
                cJSON_Delete(target);
                target = cJSON_CreateObject();
        }
        cJSON_ArrayForEach(member, config)
        {
                cJSON *old = cJSON_DetachItemFromObjectCaseSensitive(target, member->string);

                cJSON_AddItemToObject(target, member->string,
                                      merge(old, member, place_member(place, member->string)));
        }
        return target;
}

cJSON *apply_config(const cJSON *live, const cJSON *config, const char *manager, const char *api_version,
                    const char *subresource, bool force, struct place root, cJSON **ret_conflicts)
{
        cJSON *object = live ? cJSON_Duplicate(live, true) : cJSON_Duplicate(config, true);
        cJSON *managers = managers_of(object), *own = find_entry(managers, manager, "Apply", subresource);
        cJSON *wanted = fields_of_object(config, root),
              *conflicts = conflicts_with(managers, own, live, config, wanted);

        if (live && !force && cJSON_GetArraySize(conflicts) > 0) {
                cJSON_Delete(object);
                cJSON_Delete(wanted);
                *ret_conflicts = conflicts;
                return NULL;
        }
        cJSON_Delete(conflicts);
        if (live) {
                cJSON *others = all_of_others(managers, own), *part = fields_owned_part(config);

                if (own)
                        remove_unwanted(object, cJSON_GetObjectItemCaseSensitive(own, "fieldsV1"), wanted,
                                        others);
                object = merge(object, part, root);
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
                                cJSON *changed = fields_changed(live, object, wanted);

                                fields_subtract(theirs, changed);
                                cJSON_Delete(changed);
                        }
                }
        }
        set_entry(managers, manager, "Apply", api_version, subresource, wanted);
        drop_empty_entries(managers);
        return object;
}
