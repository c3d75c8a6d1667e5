/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery of one kind: a GET of its group's resource list. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "kube/resource.h"

#define DISCOVERY_TIMEOUT_USEC (30 * USEC_PER_SEC)

struct kube_discovery {
        char *api_version, *kind;
        struct kube_transfer *transfer;
        kube_discovery_done_t on_done;
        void *userdata;
};

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

static void discovery_free(struct kube_discovery *discovery)
{
        free(discovery->api_version);
        free(discovery->kind);
        free(discovery);
}

static void on_done(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                    void *userdata)
{
        struct kube_discovery *discovery = userdata;
        struct kube_resource resource = {0};
        _cleanup_kube_error_ struct kube_error error = KUBE_ERROR_NONE;
        int r = 0;

        if (response->error.failure == KUBE_FAILURE_HTTP && response->error.http_status == 404) {
                kube_error_set(&error, KUBE_FAILURE_HTTP, "the server has no %s (is its CRD installed?): %s",
                               discovery->api_version, response->error.message);
                error.http_status = 404;
        } else if (response->error.failure != KUBE_FAILURE_NONE) {
                (void)kube_error_copy(&response->error,
                                      &error); /* without memory: the failure without its words */
                error.failure = response->error.failure;
        } else {
                r = kube_resource_from_list(discovery->api_version, discovery->kind, response->body,
                                            response->body_size, &resource);
                if (r == -ENOENT) {
                        kube_error_set(&error, KUBE_FAILURE_HTTP, "the server has no kind %s in %s",
                                       discovery->kind, discovery->api_version);
                        error.http_status = 404;
                } else if (r < 0) {
                        kube_error_set(&error, KUBE_FAILURE_PROTOCOL,
                                       "the server's resource list of %s cannot be understood",
                                       discovery->api_version);
                }
        }
        discovery->on_done(resource.plural ? &resource : NULL, &error, response, discovery->userdata);
        discovery_free(discovery);
}

static char *list_path(const char *api_version)
{
        char *path;

        if (asprintf(&path, "%s/%s", strchr(api_version, '/') ? "/apis" : "/api", api_version) < 0)
                return NULL;
        return path;
}

int kube_discovery_start(struct kube_client *client, const char *api_version, const char *kind,
                         kube_discovery_done_t callback, void *userdata, struct kube_discovery **ret)
{
        struct kube_discovery *discovery = calloc(1, sizeof(*discovery));
        _cleanup_free_ char *path = list_path(api_version);
        struct kube_request request = {
                .method = "GET",
                .path = path,
                .timeout_usec = DISCOVERY_TIMEOUT_USEC,
                .on_done = on_done,
                .userdata = discovery,
        };
        int r = -ENOMEM;

        if (!discovery || !path) {
                free(discovery);
                return -ENOMEM;
        }
        discovery->on_done = callback;
        discovery->userdata = userdata;
        discovery->api_version = strdup(api_version);
        discovery->kind = strdup(kind);
        if (discovery->api_version && discovery->kind)
                r = kube_client_start(client, &request, &discovery->transfer);
        if (r < 0) {
                discovery_free(discovery);
                return r;
        }
        *ret = discovery;
        return 0;
}

void kube_discovery_cancel(struct kube_discovery *discovery)
{
        if (!discovery)
                return;
        kube_transfer_cancel(discovery->transfer);
        discovery_free(discovery);
}
