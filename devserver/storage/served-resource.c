/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/storage/served-resource.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "devserver/storage/version.h"
#include "devserver/tree/convert.h"
#include "devserver/tree/form.h"

struct resource *resource_new(const char *group, const char *version, const char *kind, const char *plural,
                              bool namespaced, bool status_subresource, bool builtin)
{
        struct resource *resource = calloc(1, sizeof(*resource));

        if (!resource)
                return NULL;
        resource->group = strdup(group);
        resource->version = strdup(version);
        resource->kind = strdup(kind);
        resource->plural = strdup(plural);
        resource->singular = strdup(kind);
        resource->table = resource;
        if (asprintf(&resource->list_kind, "%sList", kind) < 0)
                resource->list_kind = NULL;
        for (char *c = resource->singular; c && *c; c++)
                *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
        resource->namespaced = namespaced;
        resource->status_subresource = status_subresource;
        resource->builtin = builtin;
        return resource;
}

void resource_free(struct resource *resource)
{
        for (size_t i = 0; i < resource->count; i++)
                version_unref(resource->object[i]);
        free(resource->object);
        free(resource->group);
        free(resource->version);
        free(resource->kind);
        free(resource->list_kind);
        free(resource->plural);
        free(resource->singular);
        cJSON_Delete(resource->short_name);
        cJSON_Delete(resource->category);
        cJSON_Delete(resource->column);
        cJSON_Delete(resource->schema);
        free(resource);
}

static void describe_text(char **text, const cJSON *names, const char *name)
{
        const char *given = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(names, name));

        if (given && given[0]) {
                free(*text);
                *text = strdup(given);
        }
}

static void describe_list(cJSON **list, const cJSON *given)
{
        cJSON_Delete(*list);
        *list = cJSON_GetArraySize(given) > 0 ? cJSON_Duplicate(given, true) : NULL;
}

void resource_describe(struct resource *resource, const cJSON *names, const cJSON *columns,
                       const cJSON *schema)
{
        describe_text(&resource->singular, names, "singular");
        describe_text(&resource->list_kind, names, "listKind");
        describe_list(&resource->short_name, cJSON_GetObjectItemCaseSensitive(names, "shortNames"));
        describe_list(&resource->category, cJSON_GetObjectItemCaseSensitive(names, "categories"));
        describe_list(&resource->column, columns);
        cJSON_Delete(resource->schema);
        resource->schema = schema ? cJSON_Duplicate(schema, true) : NULL;
        if (!resource->column)
                resource->column = cJSON_Parse("[{\"name\":\"Age\",\"type\":\"date\",\"jsonPath\":"
                                               "\".metadata.creationTimestamp\"}]");
}

char *resource_api_version(const struct resource *resource)
{
        char *text;

        if (asprintf(&text, "%s%s%s", resource->group, resource->group[0] ? "/" : "", resource->version) < 0)
                return NULL;
        return text;
}

int resource_convert(cJSON *object, const struct resource *resource)
{
        _cleanup_free_ char *api_version = resource_api_version(resource);

        return api_version ? convert_to(object, api_version) : -ENOMEM;
}

cJSON *version_parse_as(const struct version *version, const struct resource *resource)
{
        cJSON *object = version_parse(version);

        if (object && resource_convert(object, resource) < 0) {
                cJSON_Delete(object);
                return NULL;
        }
        if (object && resource->builtin && resource->table != resource)
                form_arrange(object, true);
        return object;
}

/* ---- objects */

char *object_key(const char *namespace_name, const char *name)
{
        char *key;

        if (asprintf(&key, "%s%s%s", namespace_name, namespace_name[0] ? "/" : "", name) < 0)
                return NULL;
        return key;
}

size_t object_lower_bound(const struct resource *resource, const char *key)
{
        size_t low = 0, high = resource->table->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(resource->table->object[middle]->key, key) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

void object_range(const struct resource *resource, const char *namespace_name, size_t *ret_begin,
                  size_t *ret_end)
{
        char bound[512];

        *ret_begin = 0;
        *ret_end = resource->table->count;
        if (!namespace_name[0])
                return;
        snprintf(bound, sizeof(bound), "%.500s/", namespace_name);
        *ret_begin = object_lower_bound(resource, bound);
        bound[strlen(bound) - 1] = '/' + 1;
        *ret_end = object_lower_bound(resource, bound);
}

bool object_is_at(const struct resource *resource, size_t index, const char *key)
{
        return index < resource->count && strcmp(resource->object[index]->key, key) == 0;
}

struct version *object_find(const struct resource *resource, const char *key)
{
        size_t index = object_lower_bound(resource, key);

        return object_is_at(resource->table, index, key) ? resource->table->object[index] : NULL;
}
