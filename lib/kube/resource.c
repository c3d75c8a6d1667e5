/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/resource.h"

#include <cjson/cJSON.h>
#include <errno.h>
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
