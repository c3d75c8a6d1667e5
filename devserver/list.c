/* SPDX-License-Identifier: Apache-2.0 */
/* LIST: selectors, pages out of a snapshot, tables for kubectl. The bytes of items are copied as they are
 * stored. */
#include <errno.h>
#include <string.h>

#include "devserver/selector.h"
#include "devserver/server.h"

#define SNAPSHOTS_MAX 16

/* ---- snapshots: later pages show the state of the first */

static void snapshot_free(struct snapshot *snapshot)
{
        for (size_t i = 0; i < snapshot->count; i++)
                version_unref(snapshot->object[i]);
        free(snapshot->object);
        free(snapshot);
}

void snapshots_free(struct server *server)
{
        while (server->snapshot) {
                struct snapshot *next = server->snapshot->next;

                snapshot_free(server->snapshot);
                server->snapshot = next;
        }
}

static void drop_oldest(struct server *server)
{
        struct snapshot **place = &server->snapshot;

        for (size_t kept = 0; *place && kept < SNAPSHOTS_MAX - 1; kept++)
                place = &(*place)->next;
        while (*place) {
                struct snapshot *old = *place;

                *place = old->next;
                snapshot_free(old);
        }
}

static bool in_namespace(const struct version *version, const char *namespace_name)
{
        return namespace_name[0] == '\0' || strcmp(version->namespace_name, namespace_name) == 0;
}

static struct snapshot *snapshot_take(struct request *request, const struct selector *selector)
{
        struct resource *resource = request->resource;
        struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

        if (!snapshot)
                return NULL;
        snapshot->resource = resource;
        snapshot->resource_version = request->server->storage.resource_version;
        snapshot->object = calloc(resource->count ? resource->count : 1, sizeof(struct version *));
        if (!snapshot->object) {
                free(snapshot);
                return NULL;
        }
        for (size_t i = 0; i < resource->count; i++)
                if (in_namespace(resource->object[i], request->namespace_name) &&
                    selector_matches(selector, resource->object[i]))
                        snapshot->object[snapshot->count++] = version_ref(resource->object[i]);
        return snapshot;
}

/* ---- writing */

static bool wants_table(const struct request *request)
{
        const char *accept = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Accept");

        return accept && strncmp(accept, "application/json;as=Table", 25) == 0;
}

static void write_row(struct text *out, const struct version *version)
{
        cJSON *object = version_parse(version);
        const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        const char *created =
                cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, "creationTimestamp"));

        text_append_string(out, "{\"cells\":[");
        text_json_string(out, version->name);
        text_append_string(out, ",");
        text_json_string(out, created ? created : "");
        text_append_string(out, "],\"object\":");
        text_append(out, version->json, version->size);
        text_append_string(out, "}");
        cJSON_Delete(object);
}

bool wants_metadata_only(const struct request *request)
{
        const char *accept = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Accept");

        return accept && strncmp(accept, "application/json;as=PartialObjectMetadata", 41) == 0;
}

void write_metadata_only(struct text *out, const struct version *version)
{
        cJSON *object = version_parse(version);
        char *metadata = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(object, "metadata"));

        text_printf(out,
                    "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":%s}",
                    metadata ? metadata : "{}");
        free(metadata);
        cJSON_Delete(object);
}

static void write_item(struct text *out, const struct resource *resource, const struct version *version)
{
        if (resource->builtin && version->bare_offset > 0) {
                text_append_string(out, "{");
                text_append(out, version->json + version->bare_offset, version->size - version->bare_offset);
        } else {
                text_append(out, version->json, version->size);
        }
}

static void write_head(struct request *request, uint64_t resource_version, const char *token,
                       size_t remaining)
{
        struct text *out = &request->answer;
        _cleanup_free_ char *api_version = resource_api_version(request->resource);

        if (wants_table(request))
                text_append_string(out,
                                   "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{");
        else if (wants_metadata_only(request))
                text_append_string(out, "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s."
                                        "io/v1\",\"metadata\":{");
        else
                text_printf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{",
                            api_version ? api_version : "", request->resource->list_kind);
        text_printf(out, "\"resourceVersion\":\"%llu\"", (unsigned long long)resource_version);
        if (token)
                text_printf(out, ",\"continue\":\"%s\"", token);
        if (token && !request_argument(request, "labelSelector") &&
            !request_argument(request, "fieldSelector"))
                text_printf(out, ",\"remainingItemCount\":%zu", remaining);
        if (wants_table(request))
                text_append_string(out, "},\"columnDefinitions\":[{\"name\":\"Name\",\"type\":\"string\","
                                        "\"format\":\"name\",\"description\":"
                                        "\"\",\"priority\":0},{\"name\":\"Created "
                                        "At\",\"type\":\"date\",\"format\":\"\",\"description\":\"\","
                                        "\"priority\":0}],\"rows\":[");
        else
                text_append_string(out, "},\"items\":[");
}

static void write_page(struct request *request, const struct snapshot *snapshot, size_t from, size_t limit,
                       bool *ret_more)
{
        size_t end = limit > 0 && snapshot->count - from > limit ? from + limit : snapshot->count;
        char token[64];

        *ret_more = end < snapshot->count;
        snprintf(token, sizeof(token), "%llu.%zu", (unsigned long long)snapshot->id, end);
        request->status = 200;
        write_head(request, snapshot->resource_version, *ret_more ? token : NULL, snapshot->count - end);
        for (size_t i = from; i < end; i++) {
                if (i > from)
                        text_append(&request->answer, ",", 1);
                if (wants_table(request))
                        write_row(&request->answer, snapshot->object[i]);
                else if (wants_metadata_only(request))
                        write_metadata_only(&request->answer, snapshot->object[i]);
                else
                        write_item(&request->answer, request->resource, snapshot->object[i]);
        }
        text_append_string(&request->answer, "]}\n");
}

/* ---- the request */

static size_t limit_of(const struct request *request)
{
        const char *limit = request_argument(request, "limit");

        return limit ? (size_t)strtoull(limit, NULL, 10) : 0;
}

static void continue_list(struct request *request, const char *token)
{
        struct server *server = request->server;
        unsigned long long id = 0;
        size_t from = 0;
        bool more;

        if (sscanf(token, "%llu.%zu", &id, &from) != 2) {
                answer_status(request, 400, "BadRequest", "continue key is not valid: illegal base64 data");
                return;
        }
        for (struct snapshot *snapshot = server->snapshot; snapshot; snapshot = snapshot->next)
                if (snapshot->id == id && snapshot->resource == request->resource &&
                    from <= snapshot->count && snapshot->resource_version >= server->storage.history_lost) {
                        write_page(request, snapshot, from, limit_of(request), &more);
                        return;
                }
        answer_status(request, 410, "Expired",
                      "The provided continue parameter is too old to display a consistent list result. "
                      "You can start a new list without the continue parameter.");
}

static struct selector *selector_of(struct request *request)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct selector *selector = NULL;

        if (selector_parse(request_argument(request, "labelSelector"),
                           request_argument(request, "fieldSelector"), request->resource, &selector,
                           &error) < 0)
                answer_status(request, 400, "BadRequest", "%s", error_message(&error));
        return selector;
}

bool version_is_number(const char *version)
{
        return version[strspn(version, "0123456789")] == '\0';
}

bool list_wait_for_version(struct request *request, const char *version)
{
        unsigned long long wanted = version ? strtoull(version, NULL, 10) : 0;
        cJSON *causes, *cause;

        if (wanted <= request->server->storage.resource_version)
                return true;
        causes = cJSON_CreateArray();
        cause = cJSON_CreateObject();
        cJSON_AddStringToObject(cause, "reason", "ResourceVersionTooLarge");
        cJSON_AddStringToObject(cause, "message", "Too large resource version");
        cJSON_AddItemToArray(causes, cause);
        answer_status_causes(request, 504, "Timeout", causes, "Too large resource version");
        return false;
}

/* An exact old version could be rebuilt from the history; nobody asks for it but tests of 410. */
static bool exact_is_gone(struct request *request, const char *version)
{
        const char *match = request_argument(request, "resourceVersionMatch");

        if (!version || !match || strcmp(match, "Exact") != 0 ||
            strtoull(version, NULL, 10) == request->server->storage.resource_version)
                return false;
        answer_status(request, 410, "Expired", "The resourceVersion for the provided list is too old.");
        return true;
}

void list_handle(struct request *request)
{
        struct server *server = request->server;
        const char *token = request_argument(request, "continue"),
                   *version = request_argument(request, "resourceVersion");
        struct selector *selector;
        struct snapshot *snapshot;
        bool more = false;

        if (version && !version_is_number(version)) {
                answer_status(request, 400, "BadRequest",
                              "resourceVersion: Invalid value: \"%s\": is no number", version);
                return;
        }
        if (token && token[0] && version && version[0]) {
                answer_status(request, 400, "BadRequest",
                              "specifying resource version is not allowed when using continue");
                return;
        }
        if (token && token[0]) {
                continue_list(request, token);
                return;
        }
        if (!list_wait_for_version(request, version) || exact_is_gone(request, version))
                return;
        selector = selector_of(request);
        if (!selector)
                return;
        snapshot = snapshot_take(request, selector);
        selector_free(selector);
        if (!snapshot) {
                answer_status(request, 500, "InternalError", "no memory");
                return;
        }
        snapshot->id = ++server->last_snapshot;
        write_page(request, snapshot, 0, limit_of(request), &more);
        if (more) {
                drop_oldest(server);
                snapshot->next = server->snapshot;
                server->snapshot = snapshot;
        } else {
                snapshot_free(snapshot);
        }
}

void list_collect_keys(struct request *request, struct text *keys)
{
        struct selector *selector = selector_of(request);

        if (!selector)
                return;
        for (size_t i = 0; i < request->resource->count; i++) {
                const struct version *version = request->resource->object[i];

                if (in_namespace(version, request->namespace_name) && selector_matches(selector, version))
                        text_append(keys, version->key, strlen(version->key) + 1);
        }
        selector_free(selector);
}
