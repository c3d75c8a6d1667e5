/* SPDX-License-Identifier: Apache-2.0 */
/* WATCH: from the last resourceVersion, for as long as the server and the network let it. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "watcher/watcher.h"

#define TIMEOUT_MIN_SEC    300
#define TIMEOUT_SPREAD_SEC 301
#define STALL_USEC         (70 * USEC_PER_SEC) /* bookmarks come about every 60 s, once one has come */
#define VERY_SHORT_USEC    USEC_PER_SEC

static void arm_stall(struct stream *stream);

/* ---- events */

static void end_with(struct stream *stream, enum kube_failure failure, const char *text)
{
        kube_error_set(&stream->stream_error, failure, "%s", text);
}

static int take_bookmark(struct stream *stream, struct span object)
{
        struct scan_object scanned;
        _cleanup_free_ char *version = NULL;
        int r = scan_object(object.start, object.size, &scanned);

        if (r >= 0)
                r = scan_string(scanned.resource_version, &version);
        if (r < 0)
                return r;
        stream->watcher->count.bookmarks++;
        stream->bookmarked = true;
        if (resource_version_less(stream->resource_version, version))
                r = stream_set_resource_version(stream, version);
        return r;
}

static int take_error(struct stream *stream, struct span object)
{
        kube_error_from_status(&stream->stream_error, 0, object.start, object.size);
        return -ECANCELED;
}

struct event {
        struct span type, object;
};

static int take_member(struct span key, struct span value, void *userdata)
{
        struct event *event = userdata;

        if (scan_string_equals(key, "type"))
                event->type = value;
        else if (scan_string_equals(key, "object"))
                event->object = value;
        return 0;
}

static int take_event(struct stream *stream, const struct event *event)
{
        if (scan_string_equals(event->type, "ADDED") || scan_string_equals(event->type, "MODIFIED"))
                return apply_object(stream, event->object.start, event->object.size, false);
        if (scan_string_equals(event->type, "DELETED"))
                return apply_deleted(stream, event->object.start, event->object.size);
        if (scan_string_equals(event->type, "BOOKMARK"))
                return take_bookmark(stream, event->object);
        if (scan_string_equals(event->type, "ERROR"))
                return take_error(stream, event->object);
        return -EBADMSG;
}

/* An undecodable line costs a resume; two in a row, without anything between them, a LIST. */
static int undecodable(struct stream *stream, const char *what)
{
        stream->watcher->count.undecodable++;
        log_warning("watch %s: %s; the stream is resumed", stream->watcher->config->watch, what);
        end_with(stream, stream->bad_line ? KUBE_FAILURE_PROTOCOL : KUBE_FAILURE_INTERRUPTED, what);
        stream->bad_line = true;
        return -ECANCELED;
}

static int on_line(const char *line, size_t size, void *userdata)
{
        struct stream *stream = userdata;
        struct event event = {0};
        struct span whole;
        int r;

        if (!line) {
                end_with(stream, KUBE_FAILURE_PROTOCOL, "an event of the watch is larger than 16 MiB");
                stream->watcher->count.undecodable++;
                return -ECANCELED;
        }
        if (size == 0)
                return 0;
        r = scan_value(line, size, &whole);
        if (r >= 0)
                r = scan_members(whole, take_member, &event);
        if (r < 0 || !event.type.start || !event.object.start)
                return undecodable(stream, "a line of the watch is no event");
        stream->watcher->count.events++;
        stream->watch_events++;
        r = take_event(stream, &event);
        if (r == -EBADMSG)
                return undecodable(stream, "an event of the watch cannot be read");
        if (r >= 0)
                stream->bad_line = false;
        return r;
}

static int on_data(struct kube_transfer *transfer _unused_, const char *bytes, size_t size, void *userdata)
{
        struct stream *stream = userdata;
        int r = frame_feed(&stream->frame, FRAME_LINE_MAX, bytes, size, on_line, stream);

        if (r < 0)
                return r;
        /* A moment's life proves little: what ends after its first event must not be repeated at full speed.
         */
        if (stream->watch_events > 0 && clock_boottime_usec() - stream->watch_started >= VERY_SHORT_USEC)
                trouble_forget(stream->watcher, &stream->trouble);
        else if (stream->watch_events > 0)
                stream_succeeded(stream);
        arm_stall(stream);
        announce_soon(stream->watcher);
        return 0;
}

/* ---- the end of it */

/* The server closed in order. A watch that ended at once, empty, may be a stale resourceVersion that is
 * not admitted (kubernetes#104171): LIST. One that ended at once with events must not be repeated at full
 * speed. */
static void closed(struct stream *stream)
{
        uint64_t lasted = clock_boottime_usec() - stream->watch_started;
        struct kube_error error = KUBE_ERROR_NONE;

        stream->watcher->count.reconnects++;
        if (lasted >= VERY_SHORT_USEC) {
                stream_succeeded(stream);
                stream_react(stream, REACT_WATCH_NOW, 0);
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

static void on_done(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                    void *userdata)
{
        struct stream *stream = userdata;
        struct kube_error error = stream->stream_error;

        stream->transfer = NULL;
        stream->timer = sd_event_source_disable_unref(stream->timer);
        stream->stream_error = KUBE_ERROR_NONE;
        frame_reset(&stream->frame); /* a fragment is no event; it comes again whole */
        if (stream->watcher->child->stopping) {
                kube_error_done(&error);
                return;
        }
        if (error.failure != KUBE_FAILURE_NONE)
                stream_failed(stream, PHASE_STREAM, &error, response->credential_serial);
        else if (response->error.failure != KUBE_FAILURE_NONE)
                stream_failed(stream, PHASE_WATCH, &response->error, response->credential_serial);
        else
                closed(stream);
        kube_error_done(&error);
}

static int on_stall(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct stream *stream = userdata;
        struct kube_error error = KUBE_ERROR_NONE;

        kube_transfer_cancel(stream->transfer);
        stream->transfer = NULL;
        frame_reset(&stream->frame);
        kube_error_set(&error, KUBE_FAILURE_TIMEOUT,
                       "nothing came on the watch for too long: the connection is dead");
        stream_failed(stream, PHASE_WATCH, &error, 0);
        kube_error_done(&error);
        return 0;
}

static void arm_stall(struct stream *stream)
{
        uint64_t usec = stream->bookmarked ? STALL_USEC : (stream->watch_timeout_sec + 5) * USEC_PER_SEC;
        int r;

        if (stream->timer)
                r = sd_event_source_set_time_relative(stream->timer, usec);
        else
                r = sd_event_add_time_relative(stream->watcher->child->event, &stream->timer, CLOCK_BOOTTIME,
                                               usec, USEC_PER_SEC, on_stall, stream);
        if (r < 0)
                child_fatal(stream->watcher->child, EXIT_CODE_SOFTWARE, NULL, NULL, "no memory for a timer");
}

/* ---- start */

/* Spread, so that a fleet does not come back all at once. */
static uint64_t random_timeout(void)
{
        uint32_t random = 0;

        if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
                random = (uint32_t)clock_boottime_usec();
        return TIMEOUT_MIN_SEC + random % TIMEOUT_SPREAD_SEC;
}

static char *watch_path(struct stream *stream)
{
        const struct message_config_watcher *config = stream->watcher->config;
        _cleanup_text_ struct text path = TEXT_EMPTY;
        _cleanup_free_ char *base =
                kube_path(&stream->watcher->resource, stream->namespace_name, NULL, NULL);
        char timeout[24];

        if (!base)
                return NULL;
        snprintf(timeout, sizeof(timeout), "%llu", (unsigned long long)stream->watch_timeout_sec);
        text_append_string(&path, base);
        kube_path_add(&path, "watch", "1");
        kube_path_add(&path, "allowWatchBookmarks", "true");
        kube_path_add(&path, "resourceVersion", stream->resource_version);
        kube_path_add(&path, "timeoutSeconds", timeout);
        if (config->label_selector[0])
                kube_path_add(&path, "labelSelector", config->label_selector);
        if (config->field_selector[0])
                kube_path_add(&path, "fieldSelector", config->field_selector);
        return text_take(&path);
}

void watch_start(struct stream *stream)
{
        struct watcher *watcher = stream->watcher;
        _cleanup_free_ char *path = NULL;
        struct kube_request request = {
                .method = "GET",
                .on_data = on_data,
                .on_done = on_done,
                .userdata = stream,
        };
        int r;

        stream->timer = sd_event_source_disable_unref(stream->timer);
        stream->state = STREAM_WATCHING;
        stream->watch_timeout_sec = random_timeout();
        stream->watch_started = clock_boottime_usec();
        stream->watch_events = 0;
        stream->bookmarked = false;
        frame_reset(&stream->frame);
        path = watch_path(stream);
        request.path = path;
        r = path ? kube_client_start(watcher->client, &request, &stream->transfer) : -ENOMEM;
        if (r < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                            "a watch cannot be started: %s", strerror(-r));
        else
                arm_stall(stream);
}
