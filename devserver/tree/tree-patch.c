/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/tree/tree-patch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "devserver/tree/list-rule.h"
#include "json/json.h"

/* Debian's cJSON 1.7.15 refuses cJSON_InsertItemInArray at any index but 0: the elements after it are moved
 * by hand. */
static void array_insert(cJSON *array, int index, cJSON *item)
{
        cJSON *rest = cJSON_CreateArray();

        while (cJSON_GetArraySize(array) > index)
                cJSON_AddItemToArray(rest, cJSON_DetachItemFromArray(array, index));
        cJSON_AddItemToArray(array, item);
        while (rest->child)
                cJSON_AddItemToArray(array, cJSON_DetachItemFromArray(rest, 0));
        cJSON_Delete(rest);
}

/* ---- strategic */

static bool same_element(const cJSON *a, const cJSON *b, const char *key)
{
        if (key[0] == '\0')
                return json_equal(a, b);
        return json_equal(cJSON_GetObjectItemCaseSensitive(a, key),
                          cJSON_GetObjectItemCaseSensitive(b, key)) &&
               cJSON_HasObjectItem(a, key);
}

static int find_element(const cJSON *list, const cJSON *element, const char *key)
{
        const cJSON *item;
        int index = 0;

        cJSON_ArrayForEach(item, list)
        {
                if (same_element(item, element, key))
                        return index;
                index++;
        }
        return -1;
}

static bool has_directive(const cJSON *value, const char *directive)
{
        const char *given = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(value, "$patch"));

        return given && strcmp(given, directive) == 0;
}

static cJSON *without_directive(const cJSON *value)
{
        cJSON *copy = cJSON_Duplicate(value, true);

        cJSON_DeleteItemFromObjectCaseSensitive(copy, "$patch");
        return copy;
}

static void merge_element(cJSON *target, const cJSON *element, const char *key)
{
        int index = find_element(target, element, key);

        if (has_directive(element, "delete")) {
                if (index >= 0)
                        cJSON_DeleteItemFromArray(target, index);
                return;
        }
        if (index < 0)
                cJSON_AddItemToArray(target, cJSON_Duplicate(element, true));
        else if (cJSON_IsObject(element))
                array_insert(target, index,
                             patch_strategic(cJSON_DetachItemFromArray(target, index), element));
}

static cJSON *merge_elements(cJSON *target, const cJSON *patch, const char *key)
{
        const cJSON *element;

        if (!cJSON_IsArray(target)) {
                cJSON_Delete(target);
                target = cJSON_CreateArray();
        }
        cJSON_ArrayForEach(element, patch) merge_element(target, element, key);
        return target;
}

/* [{"$patch": "replace"}, ...]: true when the list is one of these; *target is replaced. */
static bool replace_elements(cJSON **target, const cJSON *patch)
{
        const cJSON *element;
        bool replaces = false;

        cJSON_ArrayForEach(element, patch) replaces = replaces || has_directive(element, "replace");
        if (!replaces)
                return false;
        cJSON_Delete(*target);
        *target = cJSON_CreateArray();
        cJSON_ArrayForEach(element, patch)
        {
                if (!has_directive(element, "replace"))
                        cJSON_AddItemToArray(*target, cJSON_Duplicate(element, true));
        }
        return true;
}

/* {"$setElementOrder/env": [{"name": "a"}, {"name": "b"}]}: the elements it names come first, in its order.
 */
static void order_elements(cJSON *list, const char *key, const cJSON *order)
{
        const cJSON *wanted;
        int position = 0;

        cJSON_ArrayForEach(wanted, order)
        {
                int index = find_element(list, wanted, key);

                if (index >= position)
                        array_insert(list, position++, cJSON_DetachItemFromArray(list, index));
        }
}

/* {"$retainKeys": ["type"]}: all others go. */
static void retain_keys(cJSON *target, const cJSON *names)
{
        cJSON *member = cJSON_IsArray(names) ? target->child : NULL;

        while (member) {
                cJSON *next = member->next;
                const cJSON *name;
                bool retained = false;

                cJSON_ArrayForEach(name, names) retained =
                        retained || (cJSON_IsString(name) && strcmp(name->valuestring, member->string) == 0);
                if (!retained)
                        cJSON_Delete(cJSON_DetachItemViaPointer(target, member));
                member = next;
        }
}

/* {"$deleteFromPrimitiveList/finalizers": ["x"]} */
static bool delete_from_list(cJSON *target, const cJSON *member)
{
        static const char prefix[] = "$deleteFromPrimitiveList/";
        const cJSON *element;
        cJSON *list;

        if (strncmp(member->string, prefix, sizeof(prefix) - 1) != 0)
                return false;
        list = cJSON_GetObjectItemCaseSensitive(target, member->string + sizeof(prefix) - 1);
        cJSON_ArrayForEach(element, member)
        {
                int index = find_element(list, element, "");

                if (index >= 0)
                        cJSON_DeleteItemFromArray(list, index);
        }
        return true;
}

/* false: an ordinary member. */
static bool take_directive(cJSON *target, const cJSON *member)
{
        if (member->string[0] != '$')
                return false;
        return strncmp(member->string, "$setElementOrder/", 17) == 0 ||
               strcmp(member->string, "$patch") == 0 || strcmp(member->string, "$retainKeys") == 0 ||
               delete_from_list(target, member);
}

static cJSON *merge_list(cJSON *old, const cJSON *member, const cJSON *patch)
{
        const char *key = strategic_merge_key(member->string, member);
        _cleanup_free_ char *order = NULL;

        if (replace_elements(&old, member))
                return old;
        if (!key) {
                cJSON_Delete(old);
                return cJSON_Duplicate(member, true);
        }
        old = merge_elements(old, member, key);
        if (asprintf(&order, "$setElementOrder/%s", member->string) < 0)
                order = NULL;
        if (order)
                order_elements(old, key, cJSON_GetObjectItemCaseSensitive(patch, order));
        return old;
}

static cJSON *merge_members(cJSON *target, const cJSON *patch, bool strategic)
{
        const cJSON *member;

        if (!cJSON_IsObject(target)) {
                cJSON_Delete(target);
                target = cJSON_CreateObject();
        }
        if (strategic)
                retain_keys(target, cJSON_GetObjectItemCaseSensitive(patch, "$retainKeys"));
        cJSON_ArrayForEach(member, patch)
        {
                cJSON *old;

                if (strategic && take_directive(target, member))
                        continue;
                if (cJSON_IsNull(member) || (strategic && has_directive(member, "delete"))) {
                        cJSON_DeleteItemFromObjectCaseSensitive(target, member->string);
                        continue;
                }
                old = cJSON_DetachItemFromObjectCaseSensitive(target, member->string);
                if (strategic && cJSON_IsArray(member))
                        old = merge_list(old, member, patch);
                else
                        old = strategic ? patch_strategic(old, member) : patch_merge(old, member);
                cJSON_AddItemToObject(target, member->string, old);
        }
        return target;
}

cJSON *patch_merge(cJSON *target, const cJSON *patch)
{
        if (cJSON_IsObject(patch))
                return merge_members(target, patch, false);
        cJSON_Delete(target);
        return cJSON_Duplicate(patch, true);
}

cJSON *patch_strategic(cJSON *target, const cJSON *patch)
{
        if (has_directive(patch, "replace")) {
                cJSON_Delete(target);
                return without_directive(patch);
        }
        if (cJSON_IsObject(patch))
                return merge_members(target, patch, true);
        cJSON_Delete(target);
        return cJSON_Duplicate(patch, true);
}

/* ---- JSON patch */

/* "~1" is '/', "~0" is '~'. */
static void unescape(char *text)
{
        char *out = text;

        for (; *text; text++)
                if (text[0] == '~' && (text[1] == '0' || text[1] == '1'))
                        *out++ = *++text == '1' ? '/' : '~';
                else
                        *out++ = *text;
        *out = '\0';
}

/* The number that a list's index is, without leading zeros; -1: none. */
static int list_index(const char *text)
{
        size_t digits = strspn(text, "0123456789");

        if (digits == 0 || digits > 8 || text[digits] || (text[0] == '0' && digits > 1))
                return -1;
        return (int)strtol(text, NULL, 10);
}

static cJSON *child_of(cJSON *parent, const char *name)
{
        if (cJSON_IsArray(parent))
                return list_index(name) >= 0 ? cJSON_GetArrayItem(parent, list_index(name)) : NULL;
        return cJSON_GetObjectItemCaseSensitive(parent, name);
}

/* The parent of what `path` points to, and the last name in it. NULL when a step is missing. */
static cJSON *resolve(cJSON *root, const char *path, char **ret_last)
{
        if (path[0] != '/')
                return NULL;
        for (;;) {
                size_t length = strcspn(path + 1, "/");
                char *name = strndup(path + 1, length);

                if (!name)
                        return NULL;
                unescape(name);
                path += 1 + length;
                if (*path == '\0') {
                        *ret_last = name;
                        return root;
                }
                root = child_of(root, name);
                free(name);
                if (!root)
                        return NULL;
        }
}

static cJSON *value_at(cJSON *root, const char *path)
{
        _cleanup_free_ char *last = NULL;
        cJSON *parent;

        if (path[0] == '\0')
                return root;
        parent = resolve(root, path, &last);
        return parent ? child_of(parent, last) : NULL;
}

/* Takes `value` over, also when it fails. A path of "" replaces the whole. */
static bool add_at(cJSON **root, const char *path, cJSON *value)
{
        _cleanup_free_ char *last = NULL;
        cJSON *parent;
        int index;

        if (path[0] == '\0') {
                cJSON_Delete(*root);
                *root = value;
                return true;
        }
        parent = resolve(*root, path, &last);
        if (!last) {
                cJSON_Delete(value);
                return false;
        }
        if (cJSON_IsObject(parent)) {
                cJSON_DeleteItemFromObjectCaseSensitive(parent, last);
                return cJSON_AddItemToObject(parent, last, value);
        }
        index = cJSON_IsArray(parent) && strcmp(last, "-") == 0 ? cJSON_GetArraySize(parent)
                : cJSON_IsArray(parent)                         ? list_index(last)
                                                                : -1;
        if (index < 0 || index > cJSON_GetArraySize(parent)) {
                cJSON_Delete(value);
                return false;
        }
        array_insert(parent, index, value);
        return true;
}

static bool remove_at(cJSON *root, const char *path)
{
        _cleanup_free_ char *last = NULL;
        cJSON *parent = resolve(root, path, &last), *there = parent ? child_of(parent, last) : NULL;

        if (!there)
                return false;
        cJSON_Delete(cJSON_DetachItemViaPointer(parent, there));
        return true;
}

static bool replace_at(cJSON **root, const char *path, const cJSON *value)
{
        return (path[0] == '\0' || remove_at(*root, path)) &&
               add_at(root, path, cJSON_Duplicate(value, true));
}

static bool copy_or_move(cJSON **root, const char *from, const char *path, bool move)
{
        const cJSON *source = value_at(*root, from);
        size_t length = strlen(from);
        cJSON *copy;

        /* Nothing can be moved into itself. */
        if (!source || (move && strncmp(path, from, length) == 0 && path[length] == '/'))
                return false;
        if (move && strcmp(from, path) == 0)
                return true;
        copy = cJSON_Duplicate(source, true);
        if (move && !remove_at(*root, from)) {
                cJSON_Delete(copy);
                return false;
        }
        return add_at(root, path, copy);
}

static bool apply_one(cJSON **root, const cJSON *operation)
{
        const char *op = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(operation, "op"));
        const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(operation, "path"));
        const char *from = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(operation, "from"));
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(operation, "value");

        if (strcmp(op, "test") == 0)
                return value && json_equal(value_at(*root, path), value);
        if (strcmp(op, "remove") == 0)
                return remove_at(*root, path);
        if (strcmp(op, "replace") == 0)
                return value && replace_at(root, path, value);
        if (strcmp(op, "add") == 0)
                return value && add_at(root, path, cJSON_Duplicate(value, true));
        if (strcmp(op, "move") == 0 || strcmp(op, "copy") == 0)
                return from && copy_or_move(root, from, path, op[0] == 'm');
        return false;
}

int patch_json(cJSON **target, const cJSON *operations, struct error *error)
{
        const cJSON *operation;

        if (!cJSON_IsArray(operations))
                return error_set(error, -EINVAL, "a JSON patch must be a list");
        cJSON_ArrayForEach(operation, operations)
        {
                if (!cJSON_IsString(cJSON_GetObjectItemCaseSensitive(operation, "op")) ||
                    !cJSON_IsString(cJSON_GetObjectItemCaseSensitive(operation, "path")))
                        return error_set(error, -EINVAL, "an operation of the JSON patch lacks op or path");
                if (!apply_one(target, operation))
                        return error_set(error, -ECANCELED,
                                         "the server rejected our request due to an error in our request");
        }
        return 0;
}
