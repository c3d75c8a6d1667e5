/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/read/serve-discovery.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/server.h"
#include "devserver/storage/served-resource.h"
#include "devserver/tree/form.h"

static void add_verbs(cJSON *item, bool builtin, bool subresource)
{
        static const char *const of_custom[] = {"delete", "deletecollection", "get",    "list",
                                                "patch",  "create",           "update", "watch"};
        static const char *const of_builtin[] = {"create", "delete", "deletecollection", "get",
                                                 "list",   "patch",  "update",           "watch"};
        static const char *const of_status[] = {"get", "patch", "update"};
        const char *const *verb = subresource ? of_status : builtin ? of_builtin : of_custom;
        cJSON *verbs = cJSON_AddArrayToObject(item, "verbs");

        for (size_t i = 0; i < (subresource ? ELEMENTS(of_status) : ELEMENTS(of_custom)); i++)
                cJSON_AddItemToArray(verbs, cJSON_CreateString(verb[i]));
}

static void add_resource(cJSON *list, const struct resource *resource, bool status)
{
        cJSON *item = cJSON_CreateObject();
        char name[256];

        snprintf(name, sizeof(name), "%s%s", resource->plural, status ? "/status" : "");
        cJSON_AddStringToObject(item, "name", name);
        cJSON_AddStringToObject(item, "singularName", status ? "" : resource->singular);
        cJSON_AddBoolToObject(item, "namespaced", resource->namespaced);
        cJSON_AddStringToObject(item, "kind", resource->kind);
        add_verbs(item, resource->builtin, status);
        if (!status && resource->short_name)
                cJSON_AddItemToObject(item, "shortNames", cJSON_Duplicate(resource->short_name, true));
        if (!status && resource->category)
                cJSON_AddItemToObject(item, "categories", cJSON_Duplicate(resource->category, true));
        cJSON_AddItemToArray(list, item);
}

/* Its body is of another group than the account itself. */
static void add_token_requests(cJSON *list)
{
        cJSON *item = cJSON_CreateObject();

        cJSON_AddStringToObject(item, "name", "serviceaccounts/token");
        cJSON_AddStringToObject(item, "singularName", "");
        cJSON_AddBoolToObject(item, "namespaced", true);
        cJSON_AddStringToObject(item, "group", "authentication.k8s.io");
        cJSON_AddStringToObject(item, "version", "v1");
        cJSON_AddStringToObject(item, "kind", "TokenRequest");
        cJSON_AddItemToArray(cJSON_AddArrayToObject(item, "verbs"), cJSON_CreateString("create"));
        cJSON_AddItemToArray(list, item);
}

static cJSON *resource_list(struct server *server, const char *group, const char *version)
{
        cJSON *root = cJSON_CreateObject(), *list;
        char group_version[256];
        bool any = false;

        snprintf(group_version, sizeof(group_version), "%s%s%s", group, group[0] ? "/" : "", version);
        cJSON_AddStringToObject(root, "kind", "APIResourceList");
        cJSON_AddStringToObject(root, "apiVersion", "v1");
        cJSON_AddStringToObject(root, "groupVersion", group_version);
        list = cJSON_AddArrayToObject(root, "resources");
        for (struct resource *resource = server->storage.resource; resource; resource = resource->next) {
                if (resource->removed || strcmp(resource->group, group) != 0 ||
                    strcmp(resource->version, version) != 0)
                        continue;
                any = true;
                add_resource(list, resource, false);
                if (resource->status_subresource)
                        add_resource(list, resource, true);
                if (resource->builtin && strcmp(resource->kind, "ServiceAccount") == 0)
                        add_token_requests(list);
        }
        if (any)
                return root;
        cJSON_Delete(root);
        return NULL;
}

/* ---- groups */

static cJSON *find_group(cJSON *groups, const char *name)
{
        cJSON *group;

        cJSON_ArrayForEach(
                group,
                groups) if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(group, "name")),
                                   name) == 0) return group;
        group = cJSON_CreateObject();
        cJSON_AddStringToObject(group, "name", name);
        cJSON_AddArrayToObject(group, "versions");
        cJSON_AddItemToArray(groups, group);
        return group;
}

static cJSON *version_entry(const struct resource *resource)
{
        _cleanup_free_ char *group_version = resource_api_version(resource);
        cJSON *entry = cJSON_CreateObject();

        cJSON_AddStringToObject(entry, "groupVersion", group_version ? group_version : "");
        cJSON_AddStringToObject(entry, "version", resource->version);
        return entry;
}

static bool has_version(const cJSON *group, const char *version)
{
        const cJSON *entry;

        cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(group, "versions")) if (
                strcmp(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "version")), version) ==
                0) return true;
        return false;
}

static cJSON *group_list(struct server *server)
{
        cJSON *root = cJSON_CreateObject(), *groups;

        cJSON_AddStringToObject(root, "kind", "APIGroupList");
        cJSON_AddStringToObject(root, "apiVersion", "v1");
        groups = cJSON_AddArrayToObject(root, "groups");
        for (struct resource *resource = server->storage.resource; resource; resource = resource->next) {
                cJSON *group;

                if (resource->removed || resource->group[0] == '\0')
                        continue;
                group = find_group(groups, resource->group);
                if (has_version(group, resource->version))
                        continue;
                cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(group, "versions"),
                                     version_entry(resource));
                if (!cJSON_GetObjectItemCaseSensitive(group, "preferredVersion"))
                        cJSON_AddItemToObject(group, "preferredVersion", version_entry(resource));
        }
        return root;
}

static bool answer_group(struct request *request, const char *name)
{
        cJSON *list = group_list(request->server), *group;

        cJSON_ArrayForEach(
                group,
                cJSON_GetObjectItemCaseSensitive(
                        list,
                        "groups")) if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(group,
                                                                                                    "name")),
                                              name) == 0)
        {
                cJSON *copy = cJSON_Duplicate(group, true);

                cJSON_AddStringToObject(copy, "kind", "APIGroup");
                cJSON_AddStringToObject(copy, "apiVersion", "v1");
                form_arrange(copy, true);
                answer_json(request, 200, copy);
                cJSON_Delete(list);
                return true;
        }
        cJSON_Delete(list);
        return false;
}

/* ---- paths */

static void answer_version_of_server(struct request *request)
{
        unsigned minor = request->server->version_minor;

        request->status = 200;
        text_printf(&request->answer,
                    "{\"major\":\"1\",\"minor\":\"%u\",\"gitVersion\":\"v1.%u.0+reconciled-devserver\","
                    "\"platform\":\"linux/amd64\",\"goVersion\":\"none\",\"compiler\":\"gcc\","
                    "\"gitCommit\":\"\",\"gitTreeState\":\"\",\"buildDate\":\"\"}\n",
                    minor, minor);
}

static bool answer_fixed(struct request *request)
{
        static const struct {
                const char *url, *json;
        } table[] = {
                {"/healthz", "ok"},
                {"/livez", "ok"},
                {"/readyz", "ok"},
                {"/api",
                 "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],\"serverAddressByClientCIDRs\":[]}"},
                {"/openapi/v3", "{\"paths\":{}}"},
        };

        if (strcmp(request->url, "/version") == 0) {
                answer_version_of_server(request);
                return true;
        }
        for (size_t i = 0; i < ELEMENTS(table); i++)
                if (strcmp(request->url, table[i].url) == 0) {
                        request->status = 200;
                        if (table[i].json[0] != '{')
                                request->content_type = "text/plain; charset=utf-8";
                        text_append_string(&request->answer, table[i].json);
                        return true;
                }
        return false;
}

static bool answer_list(struct request *request, const char *group, const char *version)
{
        cJSON *list = resource_list(request->server, group, version);

        if (list)
                answer_json(request, 200, list);
        return list != NULL;
}

bool discovery_handle(struct request *request)
{
        char group[128], version[64];
        int length = 0;

        if (answer_fixed(request))
                return true;
        /* Protobuf is asked for; no bytes are a valid document without definitions: kubectl skips its
         * validation. */
        if (strcmp(request->url, "/openapi/v2") == 0) {
                request->status = 200;
                return true;
        }
        if (strcmp(request->url, "/apis") == 0) {
                answer_json(request, 200, group_list(request->server));
                return true;
        }
        if (strcmp(request->url, "/api/v1") == 0)
                return answer_list(request, "", "v1");
        if (sscanf(request->url, "/apis/%127[^/]/%63[^/]%n", group, version, &length) == 2 &&
            request->url[length] == '\0')
                return answer_list(request, group, version);
        length = 0;
        if (sscanf(request->url, "/apis/%127[^/]%n", group, &length) == 1 && request->url[length] == '\0')
                return answer_group(request, group);
        return false;
}
