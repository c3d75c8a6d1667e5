/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/patch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The lists of built-in kinds that are merged by key; all others are replaced whole. */
static const struct {
        const char *field, *key;
} merge_list[] = {
        {"finalizers", ""},     {"ownerReferences", "uid"},    {"conditions", "type"},
        {"containers", "name"}, {"initContainers", "name"},    {"env", "name"},
        {"volumes", "name"},    {"volumeMounts", "mountPath"}, {"imagePullSecrets", "name"},
};

const char *list_merge_key(const char *field)
{
        for (size_t i = 0; field && i < sizeof(merge_list) / sizeof(merge_list[0]); i++)
                if (strcmp(merge_list[i].field, field) == 0)
                        return merge_list[i].key;
        return NULL;
}

/* Debian's cJSON 1.7.15 refuses cJSON_InsertItemInArray at any index but 0: what stands behind is moved by
 * hand. */
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
                return cJSON_Compare(a, b, true);
        return cJSON_Compare(cJSON_GetObjectItemCaseSensitive(a, key),
                             cJSON_GetObjectItemCaseSensitive(b, key), true) &&
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

static void merge_element(cJSON *target, const cJSON *element, const char *key)
{
        const char *directive = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(element, "$patch"));
        int index = find_element(target, element, key);

        if (directive && strcmp(directive, "delete") == 0) {
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

static cJSON *merge_members(cJSON *target, const cJSON *patch, bool strategic)
{
        const cJSON *member;

        if (!cJSON_IsObject(target)) {
                cJSON_Delete(target);
                target = cJSON_CreateObject();
        }
        cJSON_ArrayForEach(member, patch)
        {
                const char *key = strategic ? list_merge_key(member->string) : NULL;
                cJSON *old;

                if (strategic &&
                    (strncmp(member->string, "$setElementOrder/", 17) == 0 ||
                     strncmp(member->string, "$retainKeys", 11) == 0 || delete_from_list(target, member)))
                        continue;
                if (cJSON_IsNull(member)) {
                        cJSON_DeleteItemFromObjectCaseSensitive(target, member->string);
                        continue;
                }
                old = cJSON_GetObjectItemCaseSensitive(target, member->string);
                old = old ? cJSON_Duplicate(old, true) : NULL;
                if (key && cJSON_IsArray(member))
                        old = merge_elements(old, member, key);
                else
                        old = strategic ? patch_strategic(old, member) : patch_merge(old, member);
                if (cJSON_HasObjectItem(target, member->string))
                        cJSON_ReplaceItemInObjectCaseSensitive(target, member->string, old);
                else
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

static int list_index(const char *text)
{
        long index = strtol(text, NULL, 10);

        return index < 0 || index > 1000000 ? 1000001 : (int)index;
}

static cJSON *child_of(cJSON *parent, const char *name)
{
        if (cJSON_IsArray(parent))
                return name[0] >= '0' && name[0] <= '9' ? cJSON_GetArrayItem(parent, list_index(name))
                                                        : NULL;
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

static cJSON *resolve_parent(cJSON *root, const char *path)
{
        _cleanup_free_ char *last = NULL;

        return resolve(root, path, &last);
}

static bool add_at(cJSON *parent, const char *name, cJSON *value)
{
        if (cJSON_IsArray(parent)) {
                if (strcmp(name, "-") == 0)
                        return cJSON_AddItemToArray(parent, value);
                if (list_index(name) > cJSON_GetArraySize(parent))
                        return false;
                array_insert(parent, list_index(name), value);
                return true;
        }
        if (!cJSON_IsObject(parent))
                return false;
        cJSON_DeleteItemFromObjectCaseSensitive(parent, name);
        return cJSON_AddItemToObject(parent, name, value);
}

static bool apply_one(cJSON *root, const cJSON *operation)
{
        const char *op = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(operation, "op"));
        const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(operation, "path"));
        const char *from = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(operation, "from"));
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(operation, "value");
        _cleanup_free_ char *last = NULL, *from_last = NULL;
        cJSON *parent = resolve(root, path, &last), *there, *moved = NULL;

        if (!parent)
                return false;
        there = child_of(parent, last);
        if (strcmp(op, "test") == 0)
                return there && value && cJSON_Compare(there, value, true);
        if (strcmp(op, "remove") == 0 || strcmp(op, "replace") == 0) {
                if (!there)
                        return false;
                cJSON_Delete(cJSON_DetachItemViaPointer(parent, there));
                return op[2] == 'm' || (value && add_at(parent, last, cJSON_Duplicate(value, true)));
        }
        if (strcmp(op, "move") == 0 || strcmp(op, "copy") == 0) {
                cJSON *source = from ? resolve(root, from, &from_last) : NULL;

                source = source ? child_of(source, from_last) : NULL;
                moved = source ? cJSON_Duplicate(source, true) : NULL;
                if (moved && op[0] == 'm')
                        cJSON_Delete(cJSON_DetachItemViaPointer(resolve_parent(root, from), source));
                return moved && add_at(parent, last, moved);
        }
        return strcmp(op, "add") == 0 && value && add_at(parent, last, cJSON_Duplicate(value, true));
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
                if (!apply_one(*target, operation))
                        return error_set(error, -ECANCELED,
                                         "the server rejected our request due to an error in our request");
        }
        return 0;
}
