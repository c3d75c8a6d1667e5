/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/path.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void kube_resource_done(struct kube_resource *resource)
{
        free(resource->group);
        free(resource->version);
        free(resource->kind);
        free(resource->plural);
        *resource = (struct kube_resource){0};
}

int kube_api_version_split(const char *api_version, char **ret_group, char **ret_version)
{
        const char *slash = strchr(api_version, '/'), *version = slash ? slash + 1 : api_version;
        _cleanup_free_ char *group = NULL, *copy = NULL;

        if (version[0] == '\0' || strchr(version, '/') || slash == api_version)
                return -EINVAL;
        group = slash ? strndup(api_version, (size_t)(slash - api_version)) : strdup("");
        copy = strdup(version);
        if (!group || !copy)
                return -ENOMEM;
        *ret_group = TAKE_PTR(group);
        *ret_version = TAKE_PTR(copy);
        return 0;
}

static int fill_resource(const char *api_version, const char *kind, const cJSON *item,
                         struct kube_resource *ret)
{
        struct kube_resource resource = {
                .kind = strdup(kind),
                .plural = strdup(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"))),
                .namespaced = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "namespaced")),
        };
        int r = kube_api_version_split(api_version, &resource.group, &resource.version);

        if (r >= 0 && (!resource.kind || !resource.plural))
                r = -ENOMEM;
        if (r < 0) {
                kube_resource_done(&resource);
                return r;
        }
        *ret = resource;
        return 0;
}

static const char *item_name(const cJSON *item)
{
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));

        return name ? name : "";
}

static bool has_status(const cJSON *list, const char *plural)
{
        const cJSON *item;
        size_t length = strlen(plural);

        cJSON_ArrayForEach(item, list)
        {
                const char *name = item_name(item);

                if (strncmp(name, plural, length) == 0 && strcmp(name + length, "/status") == 0)
                        return true;
        }
        return false;
}

static int find_in_list(const char *api_version, const char *kind, const cJSON *list,
                        struct kube_resource *ret)
{
        const cJSON *item;

        cJSON_ArrayForEach(item, list)
        {
                const char *item_kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "kind"));
                const char *name = item_name(item);
                int r;

                /* Subresources ("pods/status") name the same kind. */
                if (!item_kind || strcmp(item_kind, kind) != 0 || name[0] == '\0' || strchr(name, '/'))
                        continue;
                r = fill_resource(api_version, kind, item, ret);
                if (r >= 0)
                        ret->status_subresource = has_status(list, ret->plural);
                return r;
        }
        return -ENOENT;
}

int kube_resource_from_list(const char *api_version, const char *kind, const char *document, size_t size,
                            struct kube_resource *ret)
{
        cJSON *root = cJSON_ParseWithLength(document, size);
        const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "resources");
        int r = cJSON_IsArray(list) ? find_in_list(api_version, kind, list, ret) : -EBADMSG;

        cJSON_Delete(root);
        return r;
}

/* RFC 3986: unreserved characters stay. */
static bool is_unreserved(unsigned char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '.' || c == '_' || c == '~';
}

static int append_escaped(struct text *text, const char *string)
{
        for (; *string; string++) {
                unsigned char c = (unsigned char)*string;

                if (is_unreserved(c))
                        text_append(text, string, 1);
                else
                        text_printf(text, "%%%02X", c);
        }
        return text->failed ? -ENOMEM : 0;
}

static void append_segment(struct text *text, const char *segment)
{
        text_append(text, "/", 1);
        append_escaped(text, segment);
}

char *kube_path(const struct kube_resource *resource, const char *namespace_name, const char *name,
                const char *subresource)
{
        _cleanup_text_ struct text path = TEXT_EMPTY;

        text_append_string(&path, resource->group[0] ? "/apis" : "/api");
        if (resource->group[0])
                append_segment(&path, resource->group);
        append_segment(&path, resource->version);
        if (namespace_name && namespace_name[0]) {
                text_append_string(&path, "/namespaces");
                append_segment(&path, namespace_name);
        }
        append_segment(&path, resource->plural);
        if (name && name[0])
                append_segment(&path, name);
        if (subresource && subresource[0])
                append_segment(&path, subresource);
        return text_take(&path);
}

int kube_path_add(struct text *path, const char *key, const char *value)
{
        bool first = !path->data || !strchr(path->data, '?');

        text_append(path, first ? "?" : "&", 1);
        append_escaped(path, key);
        text_append(path, "=", 1);
        return append_escaped(path, value);
}

int kube_key_split(const char *key, char **ret_namespace, char **ret_name)
{
        const char *slash = strchr(key, '/');
        _cleanup_free_ char *namespace_name = NULL, *name = NULL;

        namespace_name = slash ? strndup(key, (size_t)(slash - key)) : strdup("");
        name = strdup(slash ? slash + 1 : key);
        if (!namespace_name || !name)
                return -ENOMEM;
        *ret_namespace = TAKE_PTR(namespace_name);
        *ret_name = TAKE_PTR(name);
        return 0;
}

void kube_path_resource(const char *path, char *buffer, size_t size)
{
        bool core = strncmp(path, "/api/", 5) == 0, grouped = strncmp(path, "/apis/", 6) == 0;
        const char *group = core ? "" : path + 6, *rest;
        size_t group_size = grouped ? strcspn(group, "/?") : 0, length;

        buffer[0] = '\0';
        if (!core && !grouped)
                return;
        rest = core ? path + 4 : group + group_size;
        rest += strspn(rest, "/");
        rest += strcspn(rest, "/?"); /* the version */
        if (strncmp(rest, "/namespaces/", 12) == 0) {
                const char *behind = rest + 12 + strcspn(rest + 12, "/?");

                if (behind[0] == '/')
                        rest = behind;
        }
        length = rest[0] == '/' ? strcspn(rest + 1, "/?") : 0;
        if (length > 0)
                snprintf(buffer, size, "%.*s/%.*s", (int)group_size, group, (int)length, rest + 1);
}
