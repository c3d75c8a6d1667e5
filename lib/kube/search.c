/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/search.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/text.h"
#include "kube/kube-ask.h"
#include "json/json.h"

#define TIMEOUT_USEC (30 * USEC_PER_SEC)
#define VERSIONS_MAX 32 /* of one group */

DEFINE_CLEANUP(cJSON *, cJSON_Delete);

struct versions {
        char *version[VERSIONS_MAX]; /* "example.com/v1" */
        size_t count;
};

static void versions_done(struct versions *versions)
{
        for (size_t i = 0; i < versions->count; i++)
                free(versions->version[i]);
}

static int search_ask(struct kube_client *client, const char *path, struct kube_answer *ret) _suspends_
{
        struct kube_request request = {
                .method = "GET",
                .path = path,
                .timeout_usec = TIMEOUT_USEC,
                .body_max = KUBE_DISCOVERY_BODY_MAX,
        };

        return kube_ask(client, &request, ret);
}

/* The result is unknown: not a 404, whatever the server has answered. Returns 0, the end of the search. */
static int stay_unknown(struct kube_finding *finding, const char *text)
{
        struct kube_error error = KUBE_ERROR_NONE;

        (void)kube_error_set(&error, KUBE_FAILURE_PROTOCOL, "%s", text);
        kube_error_done(&finding->error);
        finding->error = error;
        return 0;
}

/* The questions return 1 where the search goes on, 0 where it has ended, as the finding says, and a negative errno. */

static void kube_finding_take_response(struct kube_finding *finding, struct kube_answer *answer)
{
        kube_error_done(&finding->response.error);
        finding->response = answer->response;
        finding->response.body = "";
        finding->response.body_size = 0;
        answer->response.error = KUBE_ERROR_NONE;
}

/* Before the server is ready, the definitions may not have been read. Where a proxy hides it, the lists must do. */
static int ask_ready(struct kube_client *client, struct kube_finding *finding) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        const struct kube_error *error = &answer.response.error;
        int r = search_ask(client, "/readyz", &answer);

        if (r < 0 || error->failure == KUBE_FAILURE_NONE || kube_error_is_withheld(error))
                return r < 0 ? r : 1;
        r = kube_error_copy(error, &finding->error);
        kube_finding_take_response(finding, &answer);
        return r;
}

static int add_version(struct versions *known, const cJSON *text)
{
        const char *version = cJSON_GetStringValue(text);

        if (!version)
                return -EBADMSG;
        if (known->count == VERSIONS_MAX)
                return -E2BIG;
        known->version[known->count] = strdup(version);
        return known->version[known->count++] ? 0 : -ENOMEM;
}

/* A document without any group is none of a server that serves something. */
static int take_versions(struct versions *known, const char *group, const cJSON *root)
{
        const cJSON *groups = cJSON_GetObjectItemCaseSensitive(root, "groups");
        const cJSON *versions = cJSON_GetObjectItemCaseSensitive(root, "versions"), *item;
        bool core = group[0] == '\0';
        int r = cJSON_GetArraySize(core ? versions : groups) > 0 ? 0 : -EBADMSG;

        cJSON_ArrayForEach(item, groups)
        {
                const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));

                if (name && strcmp(name, group) == 0)
                        versions = cJSON_GetObjectItemCaseSensitive(item, "versions");
        }
        cJSON_ArrayForEach(item, versions)
        {
                if (r >= 0)
                        r = add_version(
                                known, core ? item : cJSON_GetObjectItemCaseSensitive(item, "groupVersion"));
        }
        return r;
}

/* Asks which versions the group has. */
static int ask_versions(struct kube_client *client, const char *group, struct versions *versions,
                        struct kube_finding *finding) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_(cJSON_Delete_pointer) cJSON *root = NULL;
        const struct kube_error *error = &answer.response.error;
        int r = search_ask(client, group[0] ? "/apis" : "/api", &answer);

        if (r < 0)
                return r;
        if (error->failure == KUBE_FAILURE_NONE) {
                root = json_parse_bounded(answer.response.body, answer.response.body_size);
                r = take_versions(versions, group, root) >= 0
                            ? 1
                            : stay_unknown(finding, "the server's list of API groups cannot be understood");
        } else if (error->http_status == 404) {
                r = stay_unknown(finding, error->message);
        } else {
                r = kube_error_copy(error, &finding->error);
        }
        kube_finding_take_response(finding, &answer);
        return r;
}

static int ask_one_version(struct kube_client *client, const char *version, const char *kind,
                           struct kube_finding *finding) _suspends_
{
        int r;

        kube_finding_done(finding);
        r = kube_ask_kind(client, version, kind, finding);
        if (r < 0 || finding->resource.plural || finding->error.http_status != 404)
                return r;
        if (finding->response.error.failure == KUBE_FAILURE_NONE)
                return 1;
        return stay_unknown(finding, finding->error.message); /* it is listed */
}

int kube_ask_all_versions(struct kube_client *client, const char *api_version, const char *kind,
                          struct kube_finding *ret)
{
        _cleanup_free_ char *group = NULL, *version = NULL;
        _cleanup_(versions_done) struct versions versions = {0};
        int r = kube_api_version_split(api_version, &group, &version);

        *ret = (struct kube_finding)KUBE_FINDING_EMPTY;
        if (r >= 0)
                r = ask_ready(client, ret);
        if (r > 0)
                r = ask_versions(client, group, &versions, ret);
        for (size_t i = 0; i < versions.count && r > 0; i++)
                r = ask_one_version(client, versions.version[i], kind, ret);
        if (r > 0) {
                kube_error_done(&ret->error);
                (void)kube_error_set(&ret->error, KUBE_FAILURE_HTTP, "no version of %s serves the kind %s",
                                     group[0] ? group : "v1", kind);
                ret->error.http_status = 404;
        }
        if (r < 0)
                kube_finding_done(ret);
        return r < 0 ? r : 0;
}

/* Discovery of one kind: a GET of its group's resource list. */
#define DISCOVERY_TIMEOUT_USEC (30 * USEC_PER_SEC)

static void take_resources(const char *api_version, const char *kind, const struct kube_response *response,
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
                take_resources(api_version, kind, &answer.response, ret);
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

void kube_finding_done(struct kube_finding *finding)
{
        kube_resource_done(&finding->resource);
        kube_error_done(&finding->error);
        kube_error_done(&finding->response.error);
        *finding = (struct kube_finding)KUBE_FINDING_EMPTY;
}
