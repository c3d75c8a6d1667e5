/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery of one kind: a GET of its group's resource list. */
#include "kube/discovery.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"
#include "kube/kube-ask.h"

#define DISCOVERY_TIMEOUT_USEC (30 * USEC_PER_SEC)

static void take_list(const char *api_version, const char *kind, const struct kube_response *response,
                      struct kube_finding *finding)
{
        int r = kube_resource_from_list(api_version, kind, response->body, response->body_size,
                                        &finding->resource);

        if (r == -ENOENT) {
                kube_error_set(&finding->error, KUBE_FAILURE_HTTP, "the server has no kind %s in %s", kind,
                               api_version);
                finding->error.http_status = 404;
        } else if (r < 0) {
                kube_error_set(&finding->error, KUBE_FAILURE_PROTOCOL,
                               "the server's resource list of %s cannot be understood", api_version);
        }
}

int kube_ask_kind(struct kube_client *client, const char *api_version, const char *kind,
                  struct kube_finding *ret)
{
        _cleanup_free_ char *path =
                format_string("%s/%s", strchr(api_version, '/') ? "/apis" : "/api", api_version);
        struct kube_request request = {
                .method = "GET",
                .path = path,
                .timeout_usec = DISCOVERY_TIMEOUT_USEC,
                .body_max = KUBE_DISCOVERY_BODY_MAX,
        };
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        const struct kube_error *error = &answer.response.error;
        int r = path ? kube_ask(client, &request, &answer) : -ENOMEM;

        *ret = (struct kube_finding)KUBE_FINDING_EMPTY;
        if (r < 0)
                return r;
        if (error->failure == KUBE_FAILURE_NONE) {
                take_list(api_version, kind, &answer.response, ret);
        } else if (error->failure == KUBE_FAILURE_HTTP && error->http_status == 404) {
                kube_error_set(&ret->error, KUBE_FAILURE_HTTP,
                               "the server has no %s (is its CRD installed?): %s", api_version,
                               error->message);
                ret->error.http_status = 404;
        } else {
                r = kube_error_copy(error, &ret->error);
        }
        kube_finding_take_response(ret, &answer);
        if (r < 0)
                kube_finding_done(ret);
        return r;
}

void kube_finding_take_response(struct kube_finding *finding, struct kube_answer *answer)
{
        kube_error_done(&finding->response.error);
        finding->response = answer->response;
        finding->response.body = "";
        finding->response.body_size = 0;
        answer->response.error = KUBE_ERROR_NONE;
}

void kube_finding_done(struct kube_finding *finding)
{
        kube_resource_done(&finding->resource);
        kube_error_done(&finding->error);
        kube_error_done(&finding->response.error);
        *finding = (struct kube_finding)KUBE_FINDING_EMPTY;
}
