/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery of one kind: a GET of its group's resource list. */
#include "kube/discovery.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"

#define DISCOVERY_TIMEOUT_USEC (30 * USEC_PER_SEC)

struct kube_discovery {
        char *api_version, *kind;
        struct kube_transfer *transfer;
        kube_discovery_done_t on_done;
        void *userdata;
};

static void discovery_free(struct kube_discovery *discovery)
{
        free(discovery->api_version);
        free(discovery->kind);
        free(discovery);
}

static void on_discovery_done(struct kube_transfer *transfer _unused_, const struct kube_response *response,
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

int kube_discovery_start(struct kube_client *client, const char *api_version, const char *kind,
                         kube_discovery_done_t callback, void *userdata, struct kube_discovery **ret)
{
        struct kube_discovery *discovery = calloc(1, sizeof(*discovery));
        _cleanup_free_ char *path =
                format_string("%s/%s", strchr(api_version, '/') ? "/apis" : "/api", api_version);
        struct kube_request request = {
                .method = "GET",
                .path = path,
                .timeout_usec = DISCOVERY_TIMEOUT_USEC,
                .body_max = KUBE_DISCOVERY_BODY_MAX,
                .on_done = on_discovery_done,
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
