/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /devserver/...: what a test asks of the server itself. Answers are JSON; mistakes are a Status with 400
 * that names the key.
 */
#include "devserver/remote-control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "devserver/cluster/backup.h"
#include "devserver/cluster/builtin.h"
#include "devserver/fault/fault-read.h"
#include "devserver/fault/fault.h"
#include "devserver/http/certificate.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/http/open-connections.h"
#include "devserver/http/write-kubeconfig.h"
#include "devserver/read/forms.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/storage.h"
#include "devserver/storage/version.h"
#include "devserver/stream/flow.h"
#include "devserver/stream/serve-watch.h"
#include "devserver/tree/tree.h"
#include "http/http-loop.h"
#include "json/json.h"

static void answer_done(struct request *request)
{
        answer_raw(request, 200, "{}");
}

static void answer_mistake(struct request *request, const struct error *error)
{
        answer_status(request, 400, "BadRequest", "%s", error_message(error));
}

static const cJSON *member(const cJSON *body, const char *name)
{
        return cJSON_GetObjectItemCaseSensitive(body, name);
}

/* All but the one that has asked for it. */
static void break_connections(struct request *request)
{
        connections_shut(request->server, request->connection);
        flows_end(request->server);
        watches_cut(request->server, NULL, true);
        http_loop_run_soon(&request->server->loop);
}

/* ---- faults */

static void add_faults(struct request *request, const cJSON *body)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        uint64_t first;

        if (faults_add(request->server, body, &first, &error) < 0) {
                answer_mistake(request, &error);
                return;
        }
        request->status = 201;
        faults_write(request->server, first, &request->answer);
}

static void list_faults(struct request *request)
{
        request->status = 200;
        faults_write(request->server, 0, &request->answer);
}

static void handle_faults(struct request *request, const cJSON *body)
{
        const char *rest = request->url + strlen("/devserver/faults");
        uint64_t id = rest[0] == '/' ? strtoull(rest + 1, NULL, 10) : 0;

        if (strcmp(request->method, "POST") == 0)
                add_faults(request, body);
        else if (strcmp(request->method, "GET") == 0)
                list_faults(request);
        else if (strcmp(request->method, "DELETE") != 0)
                answer_status(request, 405, "MethodNotAllowed", "faults take GET, POST and DELETE");
        else if ((rest[0] == '/' && id == 0) || (!faults_remove(request->server, id) && id > 0))
                answer_status(request, 404, "NotFound", "there is no fault %s", rest + 1);
        else
                answer_done(request);
}

/* ---- history */

static void compact(struct request *request, const cJSON *body)
{
        struct storage *storage = &request->server->storage;
        const char *text = json_text(body, "resourceVersion");
        uint64_t version = text[0] ? strtoull(text, NULL, 10) : storage->resource_version;

        if (!version_is_number(text) || version > storage->resource_version) {
                answer_status(request, 400, "BadRequest",
                              "resourceVersion: \"%s\" is no version that there is already", text);
                return;
        }
        storage_compact(storage, version);
        answer_done(request);
}

static void snapshot(struct request *request, const cJSON *body _unused_)
{
        uint64_t id = backup_take(request->server);

        if (id == 0)
                answer_status(request, 500, "InternalError", "no memory");
        else {
                request->status = 201;
                text_printf(&request->answer, "{\"id\":\"%llu\"}\n", (unsigned long long)id);
        }
}

static void restore(struct request *request, const cJSON *body)
{
        const char *id = json_text(body, "id");

        if (!backup_restore(request->server, strtoull(id, NULL, 10))) {
                answer_status(request, 400, "BadRequest", "id: there is no snapshot \"%s\"", id);
                return;
        }
        break_connections(request);
        answer_done(request);
}

static void another_cluster(struct request *request, const cJSON *body _unused_)
{
        builtin_renew_identity(request->server);
        break_connections(request);
        answer_done(request);
}

/* ---- credentials */

static void certificate(struct request *request, const cJSON *body)
{
        const char *authority = json_text(body, "authority");

        if (!request->server->certificate)
                answer_status(request, 400, "BadRequest", "this server was started without --tls");
        else if (strcmp(authority, "same") != 0 && strcmp(authority, "new") != 0)
                answer_status(request, 400, "BadRequest", "authority: \"same\" or \"new\" is expected");
        else {
                certificate_renew_soon(request->server, strcmp(authority, "new") == 0);
                answer_done(request);
        }
}

static void token(struct request *request, const cJSON *body)
{
        const char *text = cJSON_GetStringValue(member(body, "token"));
        char *copy = text && text[0] ? strdup(text) : NULL;

        if (!copy) {
                answer_status(request, 400, "BadRequest", "token: a text is expected");
                return;
        }
        free(request->server->token);
        request->server->token = copy;
        if (cJSON_IsTrue(member(body, "kubeconfig")) && kubeconfig_write(request->server, NULL) < 0)
                answer_status(request, 500, "InternalError", "the kubeconfig cannot be written");
        else
                answer_done(request);
}

/* ---- connections */

static void handle_watches(struct request *request, const cJSON *body)
{
        const char *how = json_text(body, "close");
        const cJSON *hold = member(body, "hold");
        _cleanup_error_ struct error error = ERROR_NONE;
        struct fault_match match = {0};

        if (!cJSON_IsBool(hold) && strcmp(how, "clean") != 0 && strcmp(how, "cut") != 0)
                answer_status(request, 400, "BadRequest",
                              "close: \"clean\" or \"cut\", or hold: true or false is expected");
        else if (fault_match_read(member(body, "match"), &match, &error) < 0)
                answer_mistake(request, &error);
        else {
                if (cJSON_IsBool(hold))
                        watches_hold(request->server, &match, cJSON_IsTrue(hold));
                else
                        watches_cut(request->server, &match, strcmp(how, "cut") == 0);
                answer_done(request);
        }
        fault_match_done(&match);
}

/* ---- objects */

static void add_object_path(struct text *out, const struct resource *resource, const struct version *version)
{
        text_append_string(out, resource->group[0] ? "/apis/" : "/api/");
        text_printf(out, "%s%s%s", resource->group, resource->group[0] ? "/" : "", resource->version);
        if (resource->namespaced)
                text_printf(out, "/namespaces/%s", version->namespace_name);
        text_printf(out, "/%s/%s", resource->plural, version->name);
}

/* All that there are, each once, with its path. */
static void list_objects(struct request *request)
{
        const struct storage *storage = &request->server->storage;
        struct text *out = &request->answer;
        const char *comma = "";

        request->status = 200;
        text_printf(out, "{\"resourceVersion\":\"%llu\",\"items\":[",
                    (unsigned long long)storage->resource_version);
        for (const struct resource *resource = storage->resource; resource; resource = resource->next)
                for (size_t i = 0; resource->table == resource && !resource->removed && i < resource->count;
                     i++) {
                        text_printf(out, "%s{\"path\":\"", comma);
                        add_object_path(out, resource, resource->object[i]);
                        text_append_string(out, "\",\"object\":");
                        write_object(out, resource, resource->object[i], REPRESENTATION_PLAIN, false);
                        text_append_string(out, "}");
                        comma = ",";
                }
        text_append_string(out, "]}\n");
}

/* ---- which */

static const struct {
        const char *name;
        void (*handle)(struct request *request, const cJSON *body);
} action[] = {
        {"compact", compact},
        {"snapshot", snapshot},
        {"restore", restore},
        {"cluster", another_cluster},
        {"token", token},
        {"certificate", certificate},
        {"connections", handle_watches},
};

static const char *const body_member[] = {"resourceVersion", "id",    "authority", "token",
                                          "kubeconfig",      "close", "hold",      "match"};

static bool is_known(const char *name)
{
        for (size_t i = 0; i < ELEMENTS(body_member); i++)
                if (strcmp(body_member[i], name) == 0)
                        return true;
        return false;
}

/* NULL: answered. */
static cJSON *read_body(struct request *request)
{
        cJSON *body = request->body.size > 0 ? json_parse(request->body.data, request->body.size)
                                             : cJSON_CreateObject();

        if (!body || (!cJSON_IsObject(body) && !cJSON_IsArray(body))) {
                answer_status(request, 400, "BadRequest", "the body of the request is no JSON");
                cJSON_Delete(body);
                return NULL;
        }
        return body;
}

static void handle_action(struct request *request, const cJSON *body)
{
        const char *name = request->url + strlen("/devserver/");
        const cJSON *item;

        cJSON_ArrayForEach(item, body) if (!item->string || !is_known(item->string))
        {
                answer_status(request, 400, "BadRequest", "%s is unknown",
                              item->string ? item->string : "a list");
                return;
        }
        for (size_t i = 0; i < ELEMENTS(action); i++)
                if (strcmp(action[i].name, name) == 0 && strcmp(request->method, "POST") == 0) {
                        action[i].handle(request, body);
                        return;
                }
        answer_status(request, 404, "NotFound", "there is no POST %s", request->url);
}

bool control_handle(struct request *request)
{
        const char *url = request->url;
        cJSON *body;

        if (strncmp(url, "/devserver/", strlen("/devserver/")) != 0)
                return false;
        body = read_body(request);
        if (!body)
                return true;
        if (strcmp(url, "/devserver/faults") == 0 || strncmp(url, "/devserver/faults/", 18) == 0)
                handle_faults(request, body);
        else if (strcmp(url, "/devserver/objects") == 0 && strcmp(request->method, "GET") == 0)
                list_objects(request);
        else
                handle_action(request, body);
        cJSON_Delete(body);
        return true;
}
