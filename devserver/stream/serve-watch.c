/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WATCH: a connection that reads the history from a cursor on, and is suspended while there is nothing new.
 * What is on its way to a slow client are places in the history and shared versions, no copies. Events that
 * enter or leave the selection are reported as ADDED and DELETED, as the real server does.
 *
 * Invariant: the cursor of a suspended watch is at the newest version, unless the watch is held.
 */
#include "devserver/stream/serve-watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/text.h"
#include "devserver/fault/fault.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/read/forms.h"
#include "devserver/read/selection.h"
#include "devserver/server.h"
#include "devserver/storage/selector.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/storage.h"
#include "devserver/storage/version.h"
#include "http/http-loop.h"

#define LAST_BOOKMARK_USEC (2 * USEC_PER_SEC)
#define DEFAULT_USEC       (1800 * USEC_PER_SEC)
/* Bytes that are formatted at a time, and bytes that are kept for a client that lags behind the history. */
#define CHUNK              ((size_t)64 * 1024)
#define BACKLOG_MAX        ((size_t)64 * 1024 * 1024)

struct watch {
        struct watch *next;
        struct server *server;
        struct MHD_Connection *connection;
        const struct request *request; /* lives as long as the connection works on it */
        struct resource *resource;
        struct selector *selector;
        char *namespace_name;
        struct version **initial; /* what there was at the start, for a watch without a version */
        size_t initial_next, initial_count;
        uint64_t cursor, last; /* the newest version told; the version that the stream ends with */
        struct text buffer;
        size_t sent; /* of the buffer */
        enum representation representation;
        bool headed; /* the table's columns were sent */
        bool initial_end_due;
        bool bookmarks, bookmark_due, suspended, cut;
        bool held; /* nothing new is sent for now */
        uint64_t deadline, next_bookmark;
};

/* ---- out */

static void resume(struct watch *watch)
{
        if (!watch->suspended)
                return;
        watch->suspended = false;
        MHD_resume_connection(watch->connection);
        http_loop_run_soon(&watch->server->loop);
}

static void end_watch(struct watch *watch)
{
        if (watch->last > watch->server->storage.resource_version)
                watch->last = watch->server->storage.resource_version;
        resume(watch);
}

static void say(struct watch *watch, const char *type, const char *json, size_t size)
{
        text_printf(&watch->buffer, "{\"type\":\"%s\",\"object\":", type);
        text_append(&watch->buffer, json, size);
        text_append_string(&watch->buffer, "}\n");
}

static void say_version(struct watch *watch, const char *type, const struct version *version)
{
        text_printf(&watch->buffer, "{\"type\":\"%s\",\"object\":", type);
        write_object(&watch->buffer, watch->resource, version, watch->representation, !watch->headed);
        text_append_string(&watch->buffer, "}\n");
        watch->headed = true;
}

static bool is_selected(const struct watch *watch, const struct version *version)
{
        if (!version ||
            (watch->namespace_name[0] && strcmp(watch->namespace_name, version->namespace_name) != 0))
                return false;
        return selector_matches(watch->selector, version);
}

/* It left the selection: sent with its last state inside, under the version of the change. */
static void say_left(struct watch *watch, const struct event *event)
{
        struct version *left = version_at(event->previous, event->resource_version);

        if (left)
                say_version(watch, "DELETED", left);
        version_unref(left);
}

static void tell_watch(struct watch *watch, const struct event *event)
{
        bool is, was;

        if (watch->resource->table != event->resource)
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

/* `annotations`: "" or a member of metadata. */
static void say_bookmark(struct watch *watch, const char *annotations, uint64_t version)
{
        _cleanup_free_ char *api_version = resource_api_version(watch->resource);
        _cleanup_text_ struct text json = TEXT_EMPTY;

        text_printf(&json,
                    "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%llu\","
                    "\"creationTimestamp\":null%s}}",
                    watch->resource->kind, api_version ? api_version : "", (unsigned long long)version,
                    annotations);
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
        if (json)
                say(watch, "ERROR", json, strlen(json));
        free(json);
        cJSON_Delete(status);
}

/* ---- what comes next */

/* false: there is nothing now. */
static bool say_next(struct watch *watch)
{
        const struct storage *storage = &watch->server->storage;
        uint64_t newest = storage->resource_version < watch->last ? storage->resource_version : watch->last;
        const struct event *event;

        if (watch->initial_next < watch->initial_count) {
                say_version(watch, "ADDED", watch->initial[watch->initial_next]);
                version_unref(TAKE_PTR(watch->initial[watch->initial_next]));
                watch->initial_next++;
                return true;
        }
        if (watch->initial_end_due) {
                watch->initial_end_due = false;
                say_bookmark(watch, ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}",
                             watch->cursor);
                return true;
        }
        if (watch->cursor >= newest || watch->held)
                return false;
        event = storage_event(storage, watch->cursor + 1);
        if (!event)
                return false;
        watch->cursor++;
        tell_watch(watch, event);
        return true;
}

static void fill(struct watch *watch)
{
        text_clear(&watch->buffer);
        watch->sent = 0;
        while (watch->buffer.size < CHUNK && say_next(watch))
                ;
        if (watch->buffer.size == 0 && watch->bookmark_due && !watch->held) {
                watch->bookmark_due = false;
                say_bookmark(watch, "", watch->server->storage.resource_version);
        }
}

static bool has_ended(const struct watch *watch)
{
        return watch->last <= watch->cursor && watch->initial_next == watch->initial_count &&
               !watch->initial_end_due;
}

ssize_t watch_read(struct watch *watch, char *out, size_t max)
{
        size_t size;

        if (watch->cut)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        if (watch->sent == watch->buffer.size)
                fill(watch);
        if (watch->buffer.failed)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        size = watch->buffer.size - watch->sent;
        if (size > 0) {
                size = size < max ? size : max;
                memcpy(out, watch->buffer.data + watch->sent, size);
                watch->sent += size;
                return (ssize_t)size;
        }
        if (has_ended(watch) || watch->server->is_ending)
                return MHD_CONTENT_READER_END_OF_STREAM;
        watch->suspended = true;
        MHD_suspend_connection(watch->connection);
        return 0;
}

static ssize_t on_watch_read(void *userdata, uint64_t position _unused_, char *out, size_t max)
{
        return watch_read(userdata, out, max);
}

void watch_free(struct watch *watch)
{
        struct watch **place = &watch->server->watch;

        while (*place && *place != watch)
                place = &(*place)->next;
        if (*place)
                *place = watch->next;
        for (size_t i = watch->initial_next; i < watch->initial_count; i++)
                version_unref(watch->initial[i]);
        free(watch->initial);
        selector_free(watch->selector);
        text_done(&watch->buffer);
        free(watch->namespace_name);
        free(watch);
}

static void on_free(void *userdata)
{
        watch_free(userdata);
}

struct MHD_Response *watch_response(struct watch *watch)
{
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 32768, on_watch_read, watch, on_free);
}

/* ---- events */

void watch_on_event(const struct event *event, void *userdata)
{
        struct server *server = userdata;

        for (struct watch *watch = server->watch; watch; watch = watch->next) {
                if (!watch->suspended || watch->held || event->resource_version <= watch->cursor)
                        continue;
                if (watch->resource->table == event->resource)
                        resume(watch);
                else
                        watch->cursor = event->resource_version;
        }
}

/* A watch that has not read the event yet takes a copy. A client that lags further than that allows is cut
 * off, as by the real server, and finds out with its next watch. */
void watch_on_forget(const struct event *event, void *userdata)
{
        struct server *server = userdata;

        for (struct watch *watch = server->watch; watch; watch = watch->next) {
                while (watch->cursor < event->resource_version && watch->buffer.size < BACKLOG_MAX)
                        if (!say_next(watch))
                                break;
                if (watch->cursor < event->resource_version) {
                        watch->last = 0;
                        resume(watch);
                }
        }
}

/* ---- start */

static int take_initial(struct watch *watch)
{
        const struct resource *table = watch->resource->table;

        watch->initial = calloc(table->count ? table->count : 1, sizeof(struct version *));
        if (!watch->initial)
                return -ENOMEM;
        for (size_t i = 0; i < table->count; i++)
                if (is_selected(watch, table->object[i]))
                        watch->initial[watch->initial_count++] = version_ref(table->object[i]);
        return 0;
}

static int begin_watching(struct watch *watch, const struct request *request)
{
        const char *version = request_argument(request, "resourceVersion");
        uint64_t from = version ? strtoull(version, NULL, 10) : 0;
        bool send_initial = request_flag(request, "sendInitialEvents");

        watch->last = UINT64_MAX;
        watch->cursor = from && !send_initial ? from : watch->server->storage.resource_version;
        watch->initial_end_due = send_initial && watch->bookmarks && !faults_forbid_initial_end(request);
        if (send_initial || (from == 0 && !request_argument(request, "sendInitialEvents")))
                return take_initial(watch);
        if (from == 0)
                return 0;
        if (from < watch->server->storage.history_lost) {
                say_gone(watch, from);
                watch->last = 0;
        }
        return 0;
}

static void set_times(struct watch *watch, const struct request *request)
{
        const char *timeout = request_argument(request, "timeoutSeconds");
        uint64_t seconds = timeout ? strtoull(timeout, NULL, 10) : 0, now = clock_boottime_usec();

        watch->deadline = now + (seconds > 0 && seconds < 100000000 ? seconds * USEC_PER_SEC : DEFAULT_USEC);
        watch->bookmarks = request_flag(request, "allowWatchBookmarks") && !faults_forbid_bookmarks(request);
        watch->next_bookmark = now + watch->server->bookmark_usec;
        /* The last one comes shortly before the end: a client that comes back starts where this one
         * ended. */
        if (watch->next_bookmark > watch->deadline)
                watch->next_bookmark = watch->deadline > now + LAST_BOOKMARK_USEC
                                               ? watch->deadline - LAST_BOOKMARK_USEC
                                               : now;
}

static void refuse_initial_events(struct request *request, const char *text)
{
        answer_status(request, 422, "Invalid", "ListOptions.meta.k8s.io \"\" is invalid: %s", text);
}

/* false: answered. */
static bool initial_events_are_valid(struct request *request, const char *version)
{
        const char *match = request_argument(request, "resourceVersionMatch");

        if (!request_argument(request, "sendInitialEvents"))
                return true;
        if (!request->server->watch_list)
                refuse_initial_events(request,
                                      "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for "
                                      "watch unless the WatchList feature gate is enabled");
        else if (!match || !match[0])
                refuse_initial_events(request, "resourceVersionMatch: Forbidden: sendInitialEvents requires "
                                               "setting resourceVersionMatch to NotOlderThan");
        else if (strcmp(match, "NotOlderThan") != 0)
                refuse_initial_events(request, "resourceVersionMatch: Unsupported value: supported values: "
                                               "\"NotOlderThan\"");
        else if (version && strtoull(version, NULL, 10) > request->server->storage.resource_version)
                answer_too_large(request, strtoull(version, NULL, 10));
        return request->status == 0;
}

/* false: answered. */
static bool request_is_valid(struct request *request)
{
        const char *version = request_argument(request, "resourceVersion");

        if (version && !version_is_number(version)) {
                answer_status(request, 400, "BadRequest",
                              "resourceVersion: Invalid value: \"%s\": is no number", version);
                return false;
        }
        if (request_argument(request, "resourceVersionMatch") &&
            !request_argument(request, "sendInitialEvents")) {
                answer_status(request, 422, "Invalid",
                              "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
                              "resourceVersionMatch is forbidden for watch");
                return false;
        }
        return initial_events_are_valid(request, version);
}

void watch_handle(struct request *request)
{
        struct server *server = request->server;
        struct watch *watch;

        if (!request_is_valid(request))
                return;
        watch = calloc(1, sizeof(*watch));
        if (!watch || !(watch->namespace_name = strdup(request->namespace_name))) {
                free(watch);
                answer_status(request, 500, "InternalError", "no memory");
                return;
        }
        watch->server = server;
        watch->connection = request->connection;
        watch->request = request;
        watch->resource = request->resource;
        watch->representation = representation_of(request);
        watch->selector = list_selector(request);
        set_times(watch, request);
        if (!watch->selector || begin_watching(watch, request) < 0) {
                if (!request->status)
                        answer_status(request, 500, "InternalError", "no memory");
                watch_free(watch);
                return;
        }
        watch->next = server->watch;
        server->watch = watch;
        request->watch = watch;
        request->status = 200;
}

void watches_end(struct server *server, const struct resource *resource)
{
        for (struct watch *watch = server->watch; watch; watch = watch->next)
                if (!resource || watch->resource == resource)
                        end_watch(watch);
}

void watches_cut(struct server *server, const struct fault_match *match, bool cut)
{
        for (struct watch *watch = server->watch; watch; watch = watch->next) {
                if (match && !fault_matches(match, watch->request))
                        continue;
                watch->cut = cut;
                if (cut)
                        resume(watch);
                else
                        end_watch(watch);
        }
}

void watches_hold(struct server *server, const struct fault_match *match, bool hold)
{
        for (struct watch *watch = server->watch; watch; watch = watch->next) {
                if (!fault_matches(match, watch->request))
                        continue;
                watch->held = hold;
                if (!hold)
                        resume(watch);
        }
}

/* ---- time */

static void tick(struct watch *watch, uint64_t now)
{
        uint64_t last = watch->deadline - LAST_BOOKMARK_USEC;

        if (watch->bookmarks && now >= watch->next_bookmark) {
                watch->next_bookmark = now + watch->server->bookmark_usec;
                if (now < last && watch->next_bookmark > last)
                        watch->next_bookmark = last;
                watch->bookmark_due = true;
                resume(watch);
        }
        if (now >= watch->deadline || (watch->suspended && http_client_has_gone(watch->connection)))
                end_watch(watch);
}

void watches_tick(struct server *server)
{
        uint64_t now = clock_boottime_usec();

        for (struct watch *watch = server->watch; watch; watch = watch->next)
                tick(watch, now);
}
