/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/tree/fields.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/tree/list-rule.h"
#include "json/json.h"

bool fields_is_leaf(const cJSON *fields)
{
        return fields->child == NULL;
}

/* ---- from values to paths */

static char *member_path(const char *name)
{
        char *path;

        return asprintf(&path, "f:%s", name) < 0 ? NULL : path;
}

static char *set_path(const cJSON *element)
{
        _cleanup_free_ char *value = cJSON_PrintUnformatted(element);
        char *path;

        return value && asprintf(&path, "v:%s", value) >= 0 ? path : NULL;
}

/* k:{"containerPort":80,"protocol":"TCP"} */
static char *map_path(const cJSON *element, const struct list_rule *rule)
{
        cJSON *identity = cJSON_CreateObject();
        char *json, *path = NULL;

        for (size_t i = 0; i < rule->count; i++) {
                cJSON *value = element_key_value(element, rule->key[i]);

                if (value)
                        cJSON_AddItemToObject(identity, rule->key[i], value);
        }
        json = cJSON_PrintUnformatted(identity);
        if (json && asprintf(&path, "k:%s", json) < 0)
                path = NULL;
        free(json);
        cJSON_Delete(identity);
        return path;
}

char *fields_element_path(const cJSON *element, const struct list_rule *rule)
{
        return rule->type == LIST_SET ? set_path(element) : map_path(element, rule);
}

static cJSON *fields_of(const cJSON *value, struct place place);

/* A set of fields that grows: cJSON would look for each new path among all others. */
struct growing {
        cJSON *fields;
        void *known; /* a tree of tsearch() over the paths in `fields` */
};

static int compare_paths(const void *a, const void *b)
{
        return strcmp(a, b);
}

static void ignore(void *path _unused_)
{
}

/* Takes both. A path that is there already stays as it is. */
static void add_path(struct growing *growing, char *path, cJSON *inner)
{
        void *node = path && inner ? tsearch(path, &growing->known, compare_paths) : NULL;

        if (!node || *(char **)node != path) {
                free(path);
                cJSON_Delete(inner);
                return;
        }
        free(inner->string);
        inner->string = path;
        cJSON_AddItemToArray(growing->fields, inner);
}

static cJSON *take_fields(struct growing *growing)
{
        tdestroy(growing->known, ignore);
        return growing->fields;
}

static cJSON *fields_of_list(const cJSON *list, struct place place, const struct list_rule *rule)
{
        struct growing growing = {.fields = cJSON_CreateObject()};
        const cJSON *element;

        cJSON_ArrayForEach(element, list)
        {
                cJSON *inner = rule->type == LIST_SET ? cJSON_CreateObject()
                                                      : fields_of(element, place_element(place));

                if (rule->type == LIST_MAP)
                        cJSON_AddItemToObject(inner, ".", cJSON_CreateObject());
                add_path(&growing, fields_element_path(element, rule), inner);
        }
        return take_fields(&growing);
}

static cJSON *fields_of(const cJSON *value, struct place place)
{
        struct list_rule rule = place_list_rule(place, value);
        struct growing growing = {0};
        const cJSON *member;

        if (rule.type != LIST_ATOMIC)
                return fields_of_list(value, place, &rule);
        growing.fields = cJSON_CreateObject();
        if (!cJSON_IsObject(value) || place_is_atomic_map(place))
                return growing.fields;
        cJSON_ArrayForEach(member, value)
        {
                add_path(&growing, member_path(member->string),
                         fields_of(member, place_member(place, member->string)));
        }
        return take_fields(&growing);
}

static void drop_members(cJSON *object, const char *const *name, size_t count)
{
        for (size_t i = 0; i < count; i++)
                cJSON_DeleteItemFromObjectCaseSensitive(object, name[i]);
}

/* What identifies the object, or belongs to the server, is nobody's. */
cJSON *fields_owned_part(const cJSON *object)
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

        drop_members(part, top, ELEMENTS(top));
        inner = cJSON_GetObjectItemCaseSensitive(part, "metadata");
        drop_members(inner, metadata, ELEMENTS(metadata));
        if (inner && !inner->child)
                cJSON_DeleteItemFromObjectCaseSensitive(part, "metadata");
        return part;
}

cJSON *fields_of_object(const cJSON *object, struct place root)
{
        cJSON *part = fields_owned_part(object), *fields = fields_of(part, root);

        cJSON_Delete(part);
        return fields;
}

/* ---- from paths to values */

static bool has_identity(const cJSON *element, const cJSON *identity)
{
        const cJSON *key;

        cJSON_ArrayForEach(key, identity)
        {
                cJSON *value = element_key_value(element, key->string);
                bool same = value && json_equal(value, key);

                cJSON_Delete(value);
                if (!same)
                        return false;
        }
        return true;
}

static cJSON *value_from(const cJSON *value, const char *path, const cJSON **at)
{
        return path[0] == 'f' ? json_member_from(value, path + 2, at) : fields_value_at(value, path);
}

cJSON *fields_value_at(const cJSON *value, const char *path)
{
        cJSON *identity, *element, *found = NULL;

        if (path[0] == 'f')
                return cJSON_GetObjectItemCaseSensitive(value, path + 2);
        if ((path[0] != 'k' && path[0] != 'v') || !cJSON_IsArray(value))
                return NULL;
        identity = json_parse(path + 2, strlen(path + 2));
        cJSON_ArrayForEach(element, value)
        {
                if (identity &&
                    (path[0] == 'v' ? json_equal(element, identity) : has_identity(element, identity))) {
                        found = element;
                        break;
                }
        }
        cJSON_Delete(identity);
        return found;
}

void fields_describe(const char *prefix, const char *path, char *out, size_t size)
{
        _cleanup_text_ struct text keys = TEXT_EMPTY;
        cJSON *identity = path[0] == 'k' ? json_parse(path + 2, strlen(path + 2)) : NULL;
        const cJSON *key;

        if (path[0] == 'f') {
                snprintf(out, size, "%s.%s", prefix, path + 2);
                return;
        }
        cJSON_ArrayForEach(key, identity)
        {
                char *value = cJSON_PrintUnformatted(key);

                text_printf(&keys, "%s%s=%s", keys.size > 0 ? "," : "", key->string, value ? value : "");
                free(value);
        }
        if (path[0] == 'v')
                text_printf(&keys, "=%s", path + 2);
        snprintf(out, size, "%s[%s]", prefix, keys.data ? keys.data : "");
        cJSON_Delete(identity);
}

/* ---- sets */

bool fields_are_valid(const cJSON *fields)
{
        const cJSON *path;

        if (!cJSON_IsObject(fields))
                return false;
        cJSON_ArrayForEach(path, fields)
        {
                bool is_step = strchr("fkvi", path->string[0]) && path->string[0] && path->string[1] == ':';

                if ((!is_step && strcmp(path->string, ".") != 0) || !fields_are_valid(path))
                        return false;
        }
        return true;
}

void fields_subtract(cJSON *fields, const cJSON *taken)
{
        const cJSON *path;

        cJSON_ArrayForEach(path, taken)
        {
                cJSON *own = cJSON_GetObjectItemCaseSensitive(fields, path->string);

                if (!own)
                        continue;
                if (fields_is_leaf(path) || fields_is_leaf(own)) {
                        cJSON_DeleteItemFromObjectCaseSensitive(fields, path->string);
                        continue;
                }
                fields_subtract(own, path);
                if (fields_is_leaf(own) ||
                    (own->child && strcmp(own->child->string, ".") == 0 && !own->child->next))
                        cJSON_DeleteItemFromObjectCaseSensitive(fields, path->string);
        }
}

void fields_add(cJSON *fields, const cJSON *more)
{
        const cJSON *path;

        cJSON_ArrayForEach(path, more)
        {
                cJSON *own = cJSON_GetObjectItemCaseSensitive(fields, path->string);

                if (own)
                        fields_add(own, path);
                else
                        cJSON_AddItemToObject(fields, path->string, cJSON_Duplicate(path, true));
        }
}

/* The leaves in which the two differ, as a field set of `after`. */
cJSON *fields_changed(const cJSON *before, const cJSON *after, const cJSON *fields)
{
        cJSON *changed = cJSON_CreateObject();
        const cJSON *path, *at_before = NULL, *at_after = NULL;

        cJSON_ArrayForEach(path, fields)
        {
                const cJSON *old, *new;

                if (strcmp(path->string, ".") == 0)
                        continue;
                old = before ? value_from(before, path->string, &at_before) : NULL;
                new = value_from(after, path->string, &at_after);
                if (old && json_equal(old, new))
                        continue;
                if (fields_is_leaf(path) || !old) {
                        cJSON_AddItemToObject(changed, path->string, cJSON_Duplicate(path, true));
                } else {
                        cJSON *inner = fields_changed(old, new, path);

                        if (inner->child)
                                cJSON_AddItemToObject(changed, path->string, inner);
                        else
                                cJSON_Delete(inner);
                }
        }
        return changed;
}

/* Removed fields have no owner any more. */
void fields_keep_existing(cJSON *fields, const cJSON *value)
{
        cJSON *path = fields ? fields->child : NULL;
        const cJSON *at = NULL;

        while (path) {
                cJSON *next = path->next;
                const cJSON *inner =
                        strcmp(path->string, ".") == 0 ? value : value_from(value, path->string, &at);

                if (!inner)
                        cJSON_Delete(cJSON_DetachItemViaPointer(fields, path));
                else if (!fields_is_leaf(path)) {
                        fields_keep_existing(path, inner);
                        /* Without a path below it, it would be a leaf: owned as a whole. */
                        if (!path->child)
                                cJSON_Delete(cJSON_DetachItemViaPointer(fields, path));
                }
                path = next;
        }
}
