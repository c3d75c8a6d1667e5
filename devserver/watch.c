/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WATCH: a connection that is suspended while there is nothing to say. Events that enter or leave the
 * selection are told as ADDED and DELETED, as the real server does.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "devserver/selector.h"
#include "devserver/server.h"

#define LAST_BOOKMARK_USEC (2 * USEC_PER_SEC)
#define TICK_USEC          (200 * USEC_PER_MSEC)

struct watch {
        struct watch *next;
        struct server *server;
        struct MHD_Connection *connection;
        struct resource *resource;
        struct selector *selector;
        char *namespace_name;
        struct text buffer;
        bool bookmarks, ended, suspended, table, metadata_only;
        uint64_t deadline, next_bookmark;
};

/* ---- out */

static void resume(struct watch *watch)
{
        if (!watch->suspended)
                return;
        watch->suspended = false;
        MHD_resume_connection(watch->connection);
        http_run_soon(watch->server);
}

static void say(struct watch *watch, const char *type, const char *json, size_t size)
{
        text_printf(&watch->buffer, "{\"type\":\"%s\",\"object\":", type);
        text_append(&watch->buffer, json, size);
        text_append_string(&watch->buffer, "}\n");
        resume(watch);
}

static void say_version(struct watch *watch, const char *type, const struct version *version)
{
        if (watch->metadata_only) {
                _cleanup_text_ struct text json = TEXT_EMPTY;

                write_metadata_only(&json, version);
                say(watch, type, json.data, json.size);
                return;
        }
        if (!watch->table) {
                say(watch, type, version->json, version->size);
                return;
        }
        text_printf(
                &watch->buffer,
                "{\"type\":\"%s\",\"object\":{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/"
                "v1\",\"metadata\":{"
                "\"resourceVersion\":\"%llu\"},\"columnDefinitions\":[{\"name\":\"Name\",\"type\":"
                "\"string\",\"format\":"
                "\"name\",\"description\":\"\",\"priority\":0}],\"rows\":[{\"cells\":[\"%s\"],\"object\":",
                type, (unsigned long long)version->resource_version, version->name);
        text_append(&watch->buffer, version->json, version->size);
        text_append_string(&watch->buffer, "}]}}\n");
        resume(watch);
}

static ssize_t on_read(void *userdata, uint64_t position _unused_, char *out, size_t max)
{
        struct watch *watch = userdata;
        size_t size = watch->buffer.size < max ? watch->buffer.size : max;

        if (size > 0) {
                memcpy(out, watch->buffer.data, size);
                text_consume(&watch->buffer, size);
                return (ssize_t)size;
        }
        if (watch->ended)
                return MHD_CONTENT_READER_END_OF_STREAM;
        watch->suspended = true;
        MHD_suspend_connection(watch->connection);
        return 0;
}

static void on_free(void *userdata)
{
        struct watch *watch = userdata, **place = &watch->server->watch;

        while (*place && *place != watch)
                place = &(*place)->next;
        if (*place)
                *place = watch->next;
        selector_free(watch->selector);
        text_done(&watch->buffer);
        free(watch->namespace_name);
        free(watch);
}

struct MHD_Response *watch_response(struct watch *watch)
{
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 32768, on_read, watch, on_free);
}

/* ---- events */

static bool is_selected(const struct watch *watch, const struct version *version)
{
        if (!version ||
            (watch->namespace_name[0] && strcmp(watch->namespace_name, version->namespace_name) != 0))
                return false;
        return selector_matches(watch->selector, version);
}

/* It left the selection: told with its last state inside, under the version of the change. */
static void say_left(struct watch *watch, const struct event *event)
{
        cJSON *object = version_parse(event->previous),
              *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        char version[24], *json;

        snprintf(version, sizeof(version), "%llu", (unsigned long long)event->resource_version);
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, "resourceVersion");
        cJSON_AddStringToObject(metadata, "resourceVersion", version);
        json = cJSON_PrintUnformatted(object);
        if (json)
                say(watch, "DELETED", json, strlen(json));
        free(json);
        cJSON_Delete(object);
}

static void tell(struct watch *watch, const struct event *event)
{
        bool is, was;

        if (watch->ended || watch->resource != event->resource)
                return;
        is = event->type != EVENT_DELETED && is_selected(watch, event->object);
        was = event->type != EVENT_ADDED && is_selected(watch, event->previous);
        if (is)
                say_version(watch, was ? "MODIFIED" : "ADDED", event->object);
        else if (was && event->type == EVENT_DELETED)
                say_version(watch, "DELETED", event->object);
        else if (was)
                say_left(watch, event);
}

void watch_on_event(const struct event *event, void *userdata)
{
        struct server *server = userdata;

        for (struct watch *watch = server->watch; watch; watch = watch->next)
                tell(watch, event);
}

static void say_bookmark(struct watch *watch)
{
        _cleanup_free_ char *api_version = resource_api_version(watch->resource);
        _cleanup_text_ struct text json = TEXT_EMPTY;

        text_printf(&json,
                    "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%llu\","
                    "\"creationTimestamp\":null}}",
                    watch->resource->kind, api_version ? api_version : "",
                    (unsigned long long)watch->server->storage.resource_version);
        say(watch, "BOOKMARK", json.data, json.size);
}

static void say_gone(struct watch *watch, uint64_t version)
{
        char message[128];
        cJSON *status;
        char *json;

        snprintf(message, sizeof(message), "too old resource version: %llu (%llu)",
                 (unsigned long long)version, (unsigned long long)watch->server->storage.history_lost + 1);
        status = status_object(410, "Expired", message);
        json = cJSON_PrintUnformatted(status);
        say(watch, "ERROR", json, strlen(json));
        free(json);
        cJSON_Delete(status);
        watch->ended = true;
}

/* ---- start */

static void replay(struct watch *watch, uint64_t from)
{
        struct storage *storage = &watch->server->storage;

        for (size_t i = 0; i < storage->history_count; i++) {
                const struct event *event =
                        &storage->history[(storage->history_first + i) % storage->history_size];

                if (event->resource_version > from)
                        tell(watch, event);
        }
}

static void begin(struct watch *watch, const char *version)
{
        uint64_t from = version ? strtoull(version, NULL, 10) : 0;

        if (from == 0) {
                for (size_t i = 0; i < watch->resource->count; i++)
                        if (is_selected(watch, watch->resource->object[i]))
                                say_version(watch, "ADDED", watch->resource->object[i]);
        } else if (from < watch->server->storage.history_lost) {
                say_gone(watch, from);
        } else {
                replay(watch, from);
        }
}

static bool asks_for_table(const struct request *request)
{
        const char *accept = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Accept");

        return accept && strncmp(accept, "application/json;as=Table", 25) == 0;
}

void watch_handle(struct request *request)
{
        struct server *server = request->server;
        _cleanup_error_ struct error error = ERROR_NONE;
        const char *timeout = request_argument(request, "timeoutSeconds");
        struct watch *watch = calloc(1, sizeof(*watch));
        uint64_t now = clock_boottime_usec();

        if (!watch || !(watch->namespace_name = strdup(request->namespace_name))) {
                free(watch);
                answer_status(request, 500, "InternalError", "no memory");
                return;
        }
        if (request_argument(request, "resourceVersion") &&
            !version_is_number(request_argument(request, "resourceVersion"))) {
                answer_status(request, 400, "BadRequest", "resourceVersion: Invalid value: is no number");
                free(watch->namespace_name);
                free(watch);
                return;
        }
        if (selector_parse(request_argument(request, "labelSelector"),
                           request_argument(request, "fieldSelector"), request->resource, &watch->selector,
                           &error) < 0) {
                answer_status(request, 400, "BadRequest", "%s", error_message(&error));
                free(watch->namespace_name);
                free(watch);
                return;
        }
        watch->server = server;
        watch->connection = request->connection;
        watch->resource = request->resource;
        watch->bookmarks = request_flag(request, "allowWatchBookmarks");
        watch->table = asks_for_table(request);
        watch->metadata_only = wants_metadata_only(request);
        watch->deadline = now + (timeout ? strtoull(timeout, NULL, 10) : 1800) * USEC_PER_SEC;
        watch->next_bookmark = now + server->bookmark_usec;
        /* The last one comes shortly before the end, so that whoever comes back starts where this one ended.
         */
        if (watch->next_bookmark > watch->deadline)
                watch->next_bookmark = watch->deadline > now + LAST_BOOKMARK_USEC
                                               ? watch->deadline - LAST_BOOKMARK_USEC
                                               : now;
        begin(watch, request_argument(request, "resourceVersion"));
        watch->next = server->watch;
        server->watch = watch;
        request->watch = watch;
        request->status = 200;
}

void watches_end(struct server *server, const struct resource *resource)
{
        for (struct watch *watch = server->watch; watch; watch = watch->next)
                if (!resource || watch->resource == resource) {
                        watch->ended = true;
                        resume(watch);
                }
}

/* ---- time */

static int on_tick(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct server *server = userdata;
        uint64_t now = clock_boottime_usec();
        int r;

        for (struct watch *watch = server->watch; watch; watch = watch->next) {
                if (watch->bookmarks && now >= watch->next_bookmark && !watch->ended) {
                        watch->next_bookmark = now + server->bookmark_usec;
                        if (now + LAST_BOOKMARK_USEC < watch->deadline &&
                            watch->next_bookmark > watch->deadline - LAST_BOOKMARK_USEC)
                                watch->next_bookmark = watch->deadline - LAST_BOOKMARK_USEC;
                        say_bookmark(watch);
                }
                if (now >= watch->deadline && !watch->ended) {
                        watch->ended = true;
                        resume(watch);
                }
        }
        r = sd_event_source_set_time_relative(source, TICK_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int watches_start(struct server *server)
{
        return sd_event_add_time_relative(server->event, NULL, CLOCK_MONOTONIC, TICK_USEC, 0, on_tick,
                                          server);
}
