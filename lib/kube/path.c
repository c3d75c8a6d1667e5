/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "object/scan.h"

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

/* ---- in a list of resources: read without a tree, as there may be very many */

struct resource_item {
        struct span name, kind, namespaced;
};

static int read_resource(struct span element, struct resource_item *ret)
{
        const struct scan_wanted wanted[] = {
                {"name", &ret->name}, {"kind", &ret->kind}, {"namespaced", &ret->namespaced}};

        *ret = (struct resource_item){0};
        return element.start[0] == '{' ? scan_find(element, wanted, ELEMENTS(wanted)) : 0;
}

/* Subresources ("pods/status") have the same kind and are skipped. Returns 1 for the resource of the kind. */
static int take_kind(struct span element, struct kube_resource *resource)
{
        _cleanup_free_ char *name = NULL;
        struct resource_item item;
        int r = read_resource(element, &item);

        if (r < 0 || !scan_string_equals(item.kind, resource->kind))
                return r;
        r = scan_string(item.name, &name);
        if (r < 0 || name[0] == '\0' || strchr(name, '/'))
                return r == -ENOMEM ? r : 0;
        resource->plural = TAKE_PTR(name);
        resource->namespaced = scan_is_true(item.namespaced);
        return 1;
}

static int find_in_list(struct span list, struct kube_resource *resource)
{
        _cleanup_free_ char *status = NULL;
        struct resource_item item;
        struct scan_walk walk;
        int r = 0;

        if (!list.start || list.start[0] != '[')
                return -EBADMSG;
        SCAN_ELEMENTS(walk, list) {
                r = take_kind(walk.value, resource);
                if (r != 0)
                        break;
        }
        if (r <= 0)
                return r < 0 ? r : walk.status < 0 ? walk.status : -ENOENT;
        status = format_string("%s/status", resource->plural);
        if (!status)
                return -ENOMEM;
        SCAN_ELEMENTS(walk, list) {
                r = read_resource(walk.value, &item);
                if (r < 0)
                        return r;
                resource->status_subresource = scan_string_equals(item.name, status);
                if (resource->status_subresource)
                        return 0;
        }
        return walk.status;
}

int kube_resource_from_list(const char *api_version, const char *kind, const char *document, size_t size,
                            struct kube_resource *ret)
{
        struct kube_resource resource = {.kind = strdup(kind)};
        struct span whole, list = {0};
        int r = resource.kind ? kube_api_version_split(api_version, &resource.group, &resource.version)
                              : -ENOMEM;

        if (r >= 0)
                r = scan_value(document, size, &whole);
        if (r >= 0)
                r = scan_find(whole, &(struct scan_wanted){"resources", &list}, 1);
        if (r >= 0)
                r = find_in_list(list, &resource);
        if (r < 0) {
                kube_resource_done(&resource);
                return r == -EAGAIN ? -EBADMSG : r;
        }
        *ret = resource;
        return 0;
}

static void append_segment(struct text *text, const char *segment)
{
        text_append(text, "/", 1);
        text_append_escaped(text, segment);
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
        text_append_escaped(path, key);
        text_append(path, "=", 1);
        return text_append_escaped(path, value);
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
        const char *group = core ? "" : path + 6, *rest, *version;
        size_t group_size = grouped ? strcspn(group, "/?") : 0, version_size, length;

        buffer[0] = '\0';
        if (!core && !grouped)
                return;
        rest = core ? path + 4 : group + group_size;
        rest += strspn(rest, "/");
        version = rest;
        rest += strcspn(rest, "/?");
        version_size = (size_t)(rest - version);
        if (strncmp(rest, "/namespaces/", 12) == 0) {
                const char *behind = rest + 12 + strcspn(rest + 12, "/?");

                if (behind[0] == '/')
                        rest = behind;
        }
        length = rest[0] == '/' ? strcspn(rest + 1, "/?") : 0;
        if (length > 0 || version_size > 0)
                snprintf(buffer, size, "%.*s/%.*s", (int)group_size, group,
                         (int)(length > 0 ? length : version_size), length > 0 ? rest + 1 : version);
}
