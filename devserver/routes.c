/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/routes.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/cluster/account-token.h"
#include "devserver/cluster/gc.h"
#include "devserver/fault/fault.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/objects/create.h"
#include "devserver/objects/delete.h"
#include "devserver/objects/object-request.h"
#include "devserver/read/serve-discovery.h"
#include "devserver/read/serve-list.h"
#include "devserver/remote-control.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/storage.h"
#include "devserver/stream/serve-watch.h"
#include "http/http-loop.h"

static bool is_authorized(const struct request *request)
{
        const char *header, *token = request->server->token;

        if (!token)
                return true;
        header = http_header(request->connection, "Authorization");
        return header && strncmp(header, "Bearer ", 7) == 0 &&
               (strcmp(header + 7, token) == 0 || account_token_is_valid(request->server, header + 7));
}

static char *take_segment(const char **url)
{
        size_t length;
        char *segment;

        if (**url == '/')
                (*url)++;
        length = strcspn(*url, "/");
        segment = strndup(*url, length);
        *url += length;
        return segment;
}

/* "/<name>/<plural>..." after namespaces, but not the namespace's own subresources. */
static bool is_inside_namespace(const char *rest)
{
        const char *inner = rest[0] == '/' ? strchr(rest + 1, '/') : NULL;

        return inner && strcmp(inner, "/status") != 0 && strcmp(inner, "/finalize") != 0;
}

/* /api/v1/... or /apis/<group>/<version>/..., then [namespaces/<ns>/]<plural>[/<name>[/<subresource>]]. */
static bool parse_url(struct request *request)
{
        const char *rest = request->url;
        _cleanup_free_ char *root = take_segment(&rest);

        if (strcmp(root, "api") != 0 && strcmp(root, "apis") != 0)
                return false;
        request->group = strcmp(root, "apis") == 0 ? take_segment(&rest) : strdup("");
        request->version = take_segment(&rest);
        request->plural = take_segment(&rest);
        if (strcmp(request->plural, "namespaces") == 0 && is_inside_namespace(rest)) {
                free(request->plural);
                request->namespace_name = take_segment(&rest);
                request->plural = take_segment(&rest);
        } else {
                request->namespace_name = strdup("");
        }
        if (rest[0] == '/' && rest[1])
                request->name = take_segment(&rest);
        if (rest[0] == '/' && rest[1])
                request->subresource = take_segment(&rest);
        return request->plural[0] != '\0' && rest[0] == '\0';
}

static bool is_token_request(const struct request *request)
{
        return request->subresource && strcmp(request->subresource, "token") == 0 &&
               request->resource->builtin && strcmp(request->resource->kind, "ServiceAccount") == 0;
}

static bool subresource_is_served(const struct request *request)
{
        return !request->subresource || is_token_request(request) ||
               (strcmp(request->subresource, "status") == 0 && request->resource->status_subresource);
}

/* The path of an object has a namespace exactly if its kind is namespaced. */
static bool scope_is_served(const struct request *request)
{
        bool has_namespace = request->namespace_name && request->namespace_name[0];

        return has_namespace == request->resource->namespaced || (!has_namespace && !request->name);
}

static void handle_collection(struct request *request)
{
        const char *method = request->method;

        if (strcmp(method, "GET") == 0 && request_flag(request, "watch"))
                watch_handle(request);
        else if (strcmp(method, "GET") == 0)
                list_handle(request);
        else if (strcmp(method, "POST") == 0)
                object_create(request);
        else if (strcmp(method, "DELETE") == 0)
                object_delete_collection(request);
        else
                answer_status(request, 405, "MethodNotAllowed",
                              "the server does not allow this method on the requested resource");
}

/* What the request wants, as RBAC names it. */
static const char *verb_of(const struct request *request, bool is_resource)
{
        static const struct {
                const char *method, *of_one, *of_all;
        } table[] = {
                {"GET", "get", "list"},      {"POST", "create", "create"},   {"PUT", "update", "update"},
                {"PATCH", "patch", "patch"}, {"DELETE", "delete", "delete"},
        };

        if (!is_resource)
                return "discovery";
        if (strcmp(request->method, "GET") == 0 && !request->name && request_flag(request, "watch"))
                return "watch";
        for (size_t i = 0; i < ELEMENTS(table); i++)
                if (strcmp(request->method, table[i].method) == 0)
                        return request->name ? table[i].of_one : table[i].of_all;
        return "";
}

static bool is_own_group(const struct request *request)
{
        const struct resource *resource = request->server->storage.resource;

        for (; resource && request->group && request->version; resource = resource->next)
                if (resource->builtin && strcmp(resource->group, request->group) == 0 &&
                    strcmp(resource->version, request->version) == 0)
                        return true;
        return false;
}

/* As kube-apiserver does: no Status, or in a group of its own one that names nothing, by which a client can
 * tell it from an object that is not there. */
static void answer_not_served(struct request *request)
{
        static const char message[] = "the server could not find the requested resource";
        cJSON *status, *code;

        if (is_own_group(request)) {
                status = status_object(404, "NotFound", message);
                code = cJSON_DetachItemFromObjectCaseSensitive(status, "code");
                cJSON_AddObjectToObject(status, "details");
                cJSON_AddItemToObject(status, "code", code);
                answer_json(request, 404, status);
                return;
        }
        request->status = 404;
        request->content_type = "text/plain; charset=utf-8";
        text_clear(&request->answer);
        text_append_string(&request->answer, "404 page not found\n");
}

static void route(struct request *request, bool is_resource)
{
        if (strcmp(request->method, "GET") == 0 && discovery_handle(request))
                return;
        if (is_resource)
                request->resource = resource_find(&request->server->storage, request->group,
                                                  request->version, request->plural);
        if (!request->resource || !subresource_is_served(request) || !scope_is_served(request))
                answer_not_served(request);
        else if (is_token_request(request))
                account_token_handle(request);
        else if (request->name)
                object_handle(request);
        else
                handle_collection(request);
}

/* Faults come before everything but the question who asks: it is the server that is not well. */
static void handle(struct request *request)
{
        const struct storage *storage = &request->server->storage;
        uint64_t before = storage->resource_version;
        bool is_resource = parse_url(request);

        request->verb = verb_of(request, is_resource);
        faults_choose(request);
        if (faults_let_through(request))
                route(request, is_resource);
        if (storage->resource_version != before)
                request->wrote = storage->resource_version;
        faults_answer(request);
}

void server_handle(struct request *request)
{
        const char *dry_run = request_argument(request, "dryRun");

        if (is_authorized(request) && dry_run && strcmp(dry_run, "All") != 0)
                answer_status(request, 400, "BadRequest",
                              "dryRun: Unsupported value: \"%s\": supported values: \"All\"", dry_run);
        else if (is_authorized(request)) {
                if (!control_handle(request))
                        handle(request);
        } else
                answer_status(request, 401, "Unauthorized", "Unauthorized");
        gc_run(request->server);
}
