/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/search.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"

#define TIMEOUT_USEC (30 * USEC_PER_SEC)
#define VERSIONS_MAX 32 /* of one group */

DEFINE_CLEANUP(cJSON *, cJSON_Delete);

struct kube_search {
        struct kube_client *client;
        struct kube_transfer *transfer;
        struct kube_discovery *discovery;
        char *group, *kind;
        char *version[VERSIONS_MAX]; /* "example.com/v1" */
        size_t count, position;
        kube_discovery_done_t on_done;
        void *userdata;
};

static void search_free(struct kube_search *search)
{
        for (size_t i = 0; i < search->count; i++)
                free(search->version[i]);
        free(search->group);
        free(search->kind);
        free(search);
}

static void search_finish(struct kube_search *search, struct kube_resource *resource,
                          const struct kube_error *error, const struct kube_response *response)
{
        search->on_done(resource, error, response, search->userdata);
        search_free(search);
}

static void finish_unknown(struct kube_search *search, const char *text,
                           const struct kube_response *response)
{
        _cleanup_kube_error_ struct kube_error error = KUBE_ERROR_NONE;

        (void)kube_error_set(&error, KUBE_FAILURE_PROTOCOL, "%s", text);
        search_finish(search, NULL, &error, response);
}

static int search_ask(struct kube_search *search, const char *path,
                      void (*on_done)(struct kube_transfer *, const struct kube_response *, void *))
{
        struct kube_request request = {
                .method = "GET",
                .path = path,
                .timeout_usec = TIMEOUT_USEC,
                .body_max = KUBE_DISCOVERY_BODY_MAX,
                .on_done = on_done,
                .userdata = search,
        };

        return kube_client_start(search->client, &request, &search->transfer);
}

/* ---- its versions, one by one */

static void next_version(struct kube_search *search, const struct kube_response *response);

static void on_version(struct kube_resource *resource, const struct kube_error *error,
                       const struct kube_response *response, void *userdata)
{
        struct kube_search *search = userdata;

        search->discovery = NULL;
        if (resource) {
                search_finish(search, resource, &KUBE_ERROR_NONE, response);
        } else if (error->http_status == 404 && response->error.failure == KUBE_FAILURE_NONE) {
                search->position++;
                next_version(search, response);
        } else if (error->http_status == 404) {
                finish_unknown(search, error->message, response); /* it is listed */
        } else {
                search_finish(search, NULL, error, response);
        }
}

static void next_version(struct kube_search *search, const struct kube_response *response)
{
        _cleanup_kube_error_ struct kube_error error = KUBE_ERROR_NONE;

        if (search->position < search->count) {
                if (kube_discovery_start(search->client, search->version[search->position], search->kind,
                                         on_version, search, &search->discovery) < 0)
                        finish_unknown(search, "no memory", response);
                return;
        }
        (void)kube_error_set(&error, KUBE_FAILURE_HTTP, "no version of %s serves the kind %s",
                             search->group[0] ? search->group : "v1", search->kind);
        error.http_status = 404;
        search_finish(search, NULL, &error, response);
}

/* ---- which versions there are */

static int add_version(struct kube_search *search, const cJSON *text)
{
        const char *version = cJSON_GetStringValue(text);

        if (!version)
                return -EBADMSG;
        if (search->count == VERSIONS_MAX)
                return -E2BIG;
        search->version[search->count] = strdup(version);
        return search->version[search->count++] ? 0 : -ENOMEM;
}

/* A document without any group is none of a server that serves something. */
static int take_versions(struct kube_search *search, const cJSON *root)
{
        const cJSON *groups = cJSON_GetObjectItemCaseSensitive(root, "groups");
        const cJSON *versions = cJSON_GetObjectItemCaseSensitive(root, "versions"), *item;
        bool core = search->group[0] == '\0';
        int r = cJSON_GetArraySize(core ? versions : groups) > 0 ? 0 : -EBADMSG;

        cJSON_ArrayForEach(item, groups)
        {
                const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));

                if (name && strcmp(name, search->group) == 0)
                        versions = cJSON_GetObjectItemCaseSensitive(item, "versions");
        }
        cJSON_ArrayForEach(item, versions)
        {
                if (r >= 0)
                        r = add_version(search,
                                        core ? item
                                             : cJSON_GetObjectItemCaseSensitive(item, "groupVersion"));
        }
        return r;
}

static void on_groups(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                      void *userdata)
{
        struct kube_search *search = userdata;
        _cleanup_(cJSON_Delete_pointer) cJSON *root = NULL;

        search->transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE) {
                if (response->error.http_status == 404)
                        finish_unknown(search, response->error.message, response);
                else
                        search_finish(search, NULL, &response->error, response);
                return;
        }
        root = cJSON_ParseWithLength(response->body, response->body_size);
        if (take_versions(search, root) < 0)
                finish_unknown(search, "the server's list of API groups cannot be understood", response);
        else
                next_version(search, response);
}

/* Before that the definitions may not have been read. Where a proxy hides it, the lists must do. */
static void on_ready(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                     void *userdata)
{
        struct kube_search *search = userdata;

        search->transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE && !kube_error_is_withheld(&response->error))
                search_finish(search, NULL, &response->error, response);
        else if (search_ask(search, search->group[0] ? "/apis" : "/api", on_groups) < 0)
                finish_unknown(search, "no memory", response);
}

int kube_search_start(struct kube_client *client, const char *api_version, const char *kind,
                      kube_discovery_done_t on_done, void *userdata, struct kube_search **ret)
{
        struct kube_search *search = calloc(1, sizeof(*search));
        _cleanup_free_ char *version = NULL;
        int r;

        if (!search)
                return -ENOMEM;
        search->client = client;
        search->on_done = on_done;
        search->userdata = userdata;
        search->kind = strdup(kind);
        r = kube_api_version_split(api_version, &search->group, &version);
        if (r >= 0)
                r = search->kind ? search_ask(search, "/readyz", on_ready) : -ENOMEM;
        if (r < 0) {
                search_free(search);
                return r;
        }
        *ret = search;
        return 0;
}

void kube_search_cancel(struct kube_search *search)
{
        if (!search)
                return;
        kube_transfer_cancel(search->transfer);
        kube_discovery_cancel(search->discovery);
        search_free(search);
}
