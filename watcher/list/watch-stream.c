/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/list/watch-stream.h"

#include <errno.h>
#include <string.h>

#include "base/backoff.h"
#include "base/duration.h"
#include "base/exit-code.h"
#include "watcher/apply/announce.h"
#include "watcher/apply/incoming.h"
#include "watcher/apply/scope.h"
#include "watcher/list/probe.h"
#include "watcher/list/transitions.h"
#include "watcher/store-failure.h"
#include "watcher/stream/missing-namespaces.h"
#include "watcher/stream/stream-request.h"

#define INITIAL_EVENTS_END "k8s.io/initial-events-end"

static void end_stream_with(struct stream *stream, enum kube_failure failure, const char *text)
{
        kube_error_set(&stream->stream_error, failure, "%s", text);
}

/* Only the bookmark with this mark ends the list; before it, other bookmarks mean nothing. */
static int take_initial_bookmark(struct stream *stream, const struct scan_object *object,
                                 const char *version)
{
        if (!scan_string_equals(scan_get(object->annotations, INITIAL_EVENTS_END), "true"))
                return 0;
        if (!stream->list_replaces && resource_version_less(version, stream->resource_version)) {
                end_stream_with(stream, KUBE_FAILURE_PROTOCOL,
                                "the streamed list is older than the known state");
                return -ECANCELED;
        }
        stream->state = STREAM_WATCHING;
        stream->watcher->count.watch_lists++;
        stream_listed(stream, version);
        return watcher_is_over(stream->watcher) ? -ECANCELED : 0;
}

static int take_bookmark(struct stream *stream, struct span object)
{
        struct scan_object scanned;
        _cleanup_free_ char *version = NULL;
        int r = scan_object(object.start, object.size, &scanned);

        if (r >= 0)
                r = scan_string(scanned.resource_version, &version);
        if (r < 0)
                return -EBADMSG;
        if (!scope_is_kind(stream->watcher, scanned.api_version, scanned.kind))
                return apply_foreign(stream, "(a bookmark)", scanned.kind);
        stream->watcher->count.bookmarks++;
        stream->bookmarked = true;
        if (stream->state == STREAM_INITIAL)
                return take_initial_bookmark(stream, &scanned, version);
        if (resource_version_less(stream->resource_version, version))
                r = stream_set_resource_version(stream, version);
        return r;
}

static int take_error(struct stream *stream, struct span object)
{
        const struct kube_resource *resource = &stream->watcher->resource;

        kube_error_from_status(&stream->stream_error, 0, object.start, object.size);
        stream->stream_error.resource = format_string("%s/%s", resource->group, resource->plural);
        return -ECANCELED;
}

struct event {
        struct span type, object;
};

static int take_event(struct stream *stream, const struct event *event)
{
        bool initial = stream->state == STREAM_INITIAL;

        if (stream->presence == NAMESPACE_MISSING && !scan_string_equals(event->type, "ERROR") &&
            !scan_string_equals(event->type, "BOOKMARK"))
                missing_namespaces_found(stream);
        if (scan_string_equals(event->type, "ADDED") || scan_string_equals(event->type, "MODIFIED"))
                return apply_object(stream, event->object.start, event->object.size, initial);
        if (scan_string_equals(event->type, "DELETED"))
                return apply_deleted(stream, event->object.start, event->object.size);
        if (scan_string_equals(event->type, "BOOKMARK"))
                return take_bookmark(stream, event->object);
        if (scan_string_equals(event->type, "ERROR"))
                return take_error(stream, event->object);
        return -EBADMSG;
}

/* After an undecodable line the watch is resumed from before it; after two in a row everything is listed. */
static int undecodable(struct stream *stream, const char *what)
{
        stream->watcher->count.undecodable++;
        log_warning("watch %s: %s; %s", stream->watcher->config->watch, what,
                    stream->bad_line ? "all objects are listed again" : "the stream is resumed");
        end_stream_with(stream, stream->bad_line ? KUBE_FAILURE_PROTOCOL : KUBE_FAILURE_INTERRUPTED, what);
        stream->bad_line = true;
        return -ECANCELED;
}

/* Negative: the watch is to end, and stream->stream_error says why. */
static int event_take(const char *line, size_t size, void *userdata)
{
        struct stream *stream = userdata;
        struct event event = {0};
        const struct scan_wanted wanted[] = {{"type", &event.type}, {"object", &event.object}};
        struct span whole;
        int r;

        if (!line) {
                stream->bad_line = true; /* a resume would bring the same line again */
                return undecodable(stream, "an event of the watch is larger than 16 MiB");
        }
        if (size == 0)
                return 0;
        r = scan_value(line, size, &whole);
        if (r >= 0)
                r = scan_find(whole, wanted, ELEMENTS(wanted));
        if (r < 0 || !event.type.start || !event.object.start)
                return undecodable(stream, "a line of the watch is not an event");
        stream->watcher->count.events++;
        r = take_event(stream, &event);
        if (r == -EBADMSG)
                return undecodable(stream, "an event of the watch cannot be read");
        if (r >= 0) {
                stream->watch_events++;
                stream->bad_line = false;
        }
        return r;
}

#define VERY_SHORT_USEC     USEC_PER_SEC
#define TIMEOUT_GRACE_USEC  (5 * USEC_PER_SEC)
#define TIMEOUT_UNKNOWN_SEC 3600 /* a server ends a watch by itself after this time at the latest */

static void timer_arm(struct stream *stream);

static uint64_t lasted(const struct stream *stream)
{
        return stream->watch_accepted ? clock_boottime_usec() - stream->watch_accepted : 0;
}

/* A watch that lived for a moment proves little: if it ends after its first event, it must not be
 * repeated at full speed. */
static void note_life(struct stream *stream)
{
        bool long_enough = lasted(stream) >= VERY_SHORT_USEC;

        if (stream->state != STREAM_WATCHING)
                return;
        stream->settled = stream->settled || long_enough;
        if (long_enough && stream->watch_events > 0)
                failures_forget(stream->watcher, &stream->failures);
        if (long_enough || stream->watch_events > 0)
                stream_succeeded(stream);
}

static int on_stream_data(struct kube_transfer *transfer _unused_, const char *bytes, size_t size,
                          void *userdata)
{
        struct stream *stream = userdata;
        struct watcher *watcher = stream->watcher;
        int r;

        failures_progress(&stream->failures);
        watcher->count.word_boottime = clock_boottime_usec();
        r = frame_feed(&stream->frame, FRAME_LINE_MAX, bytes, size, event_take, stream);
        if (r >= 0)
                r = announce_in_time(watcher);
        else
                announce_soon(watcher);
        if (r < 0)
                return r;
        note_life(stream);
        timer_arm(stream);
        return 0;
}

static void on_accepted(struct kube_transfer *transfer _unused_, void *userdata)
{
        struct stream *stream = userdata;

        stream->watch_accepted = clock_boottime_usec();
        timer_arm(stream);
        if (stream->state == STREAM_WATCHING)
                probe_start(stream);
}

/* ---- the end of it */

/* The server closed the watch in order. A watch that ended at once, empty, may be a stale resourceVersion
 * that is not admitted (kubernetes#104171): LIST. One that ended at once with events must not be repeated
 * at full speed. A streamed list ends only with its bookmark. */
static void closed(struct stream *stream)
{
        struct kube_error error = KUBE_ERROR_NONE;

        if (stream->state == STREAM_INITIAL) {
                kube_error_set(&error, KUBE_FAILURE_PROTOCOL,
                               "the server ends the streamed list before its end");
                stream_failed(stream, PHASE_INITIAL, &error, 0);
                kube_error_done(&error);
                return;
        }
        stream->watcher->count.reconnects++;
        if (lasted(stream) >= VERY_SHORT_USEC) {
                stream_succeeded(stream);
                stream_closed(stream);
                return;
        }
        if (stream->watch_events == 0)
                kube_error_set(&error, KUBE_FAILURE_PROTOCOL, "the server closes the watch at once");
        else
                kube_error_set(&error, KUBE_FAILURE_INTERRUPTED,
                               "the server closes the watch after a moment");
        stream_failed(stream, PHASE_WATCH, &error, 0);
        kube_error_done(&error);
}

static void on_stream_done(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                           void *userdata)
{
        struct stream *stream = userdata;
        bool initial = stream->state == STREAM_INITIAL;
        struct kube_error error = stream->stream_error;

        stream->transfer = NULL;
        stream->stream_error = KUBE_ERROR_NONE;
        stream_give_up(stream);
        if (watcher_is_over(stream->watcher))
                ;
        else if (error.failure != KUBE_FAILURE_NONE)
                stream_failed(stream, initial ? PHASE_INITIAL : PHASE_STREAM, &error,
                              response->credential_serial);
        else if (response->error.failure != KUBE_FAILURE_NONE)
                stream_failed(stream, initial ? PHASE_INITIAL : PHASE_WATCH, &response->error,
                              response->credential_serial);
        else
                closed(stream);
        kube_error_done(&error);
}

/* ---- the timer: a watch that has lasted, then one that is silent */

static int on_stream_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct stream *stream = userdata;
        struct kube_error error = KUBE_ERROR_NONE;
        enum phase phase = stream->state == STREAM_INITIAL ? PHASE_INITIAL : PHASE_WATCH;

        if (stream->state == STREAM_WATCHING && stream->watch_accepted && !stream->settled) {
                note_life(stream);
                stream->settled = true;
                timer_arm(stream);
                return 0;
        }
        stream_give_up(stream);
        kube_error_set(&error, KUBE_FAILURE_TIMEOUT,
                       phase == PHASE_INITIAL
                               ? "the streamed list does not end"
                               : "nothing came on the watch for too long: the connection is dead");
        stream_failed(stream, phase, &error, 0);
        kube_error_done(&error);
        return 0;
}

/* Once a bookmark has come, others follow about every minute; a watch without bookmarks is ended by the
 * server. */
static uint64_t silence_allowed(const struct stream *stream)
{
        const struct message_config_watcher *config = stream->watcher->config;
        uint64_t now = clock_boottime_usec(), until = stream->watcher->throttle_until;

        if (!stream->watch_accepted)
                return config->stall_usec + (until > now ? until - now : 0);
        if (stream->state == STREAM_INITIAL)
                return config->initial_events_usec;
        if (!stream->settled)
                return VERY_SHORT_USEC + USEC_PER_MSEC;
        return stream->bookmarked ? config->stall_usec
                                  : stream->watch_timeout_sec * USEC_PER_SEC + TIMEOUT_GRACE_USEC;
}

static void timer_arm(struct stream *stream)
{
        stream_timer_arm(stream, silence_allowed(stream), on_stream_timer);
}

/* ---- start */

/* Timeouts are spread, so that a fleet does not come back all at once. */
static uint64_t random_timeout_sec(const struct watcher *watcher)
{
        uint64_t least = watcher->config->watch_timeout_usec / USEC_PER_SEC;

        if (request_is_left_out(watcher, OPTIONAL_TIMEOUT))
                return TIMEOUT_UNKNOWN_SEC;
        return least + random_below(least + 1);
}

static void start_stream_state(struct stream *stream, enum stream_state state, enum request kind)
{
        struct watcher *watcher = stream->watcher;
        _cleanup_free_ char *path = NULL;
        struct kube_request request = {
                .method = "GET",
                .accept = request_accept(watcher, kind),
                .on_accepted = on_accepted,
                .on_data = on_stream_data,
                .on_done = on_stream_done,
                .userdata = stream,
        };
        char *from = strdup(kind == REQUEST_WATCH ? stream->resource_version : "");
        int r;

        stream->timer = sd_event_source_disable_unref(stream->timer);
        stream->state = state;
        stream->watch_timeout_sec = random_timeout_sec(watcher);
        stream->watch_accepted = stream->watch_events = 0;
        stream->bookmarked = stream->settled = false;
        frame_reset(&stream->frame);
        failures_held(watcher, &stream->failures);
        path = request_path(stream, kind);
        request.path = path;
        r = path && from ? kube_client_start(watcher->client, &request, &stream->transfer) : -ENOMEM;
        if (r < 0) {
                free(from);
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, "a watch cannot be started: %s",
                            strerror(-r));
                return;
        }
        free(stream->watched_version);
        stream->watched_version = from;
        timer_arm(stream);
}

void watch_start(struct stream *stream)
{
        start_stream_state(stream, STREAM_WATCHING, REQUEST_WATCH);
}

void watch_initial(struct stream *stream)
{
        start_stream_state(stream, STREAM_INITIAL, REQUEST_INITIAL);
}
