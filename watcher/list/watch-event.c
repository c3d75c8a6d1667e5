/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/list/watch-event.h"

#include <errno.h>
#include <string.h>

#include "watcher/apply/incoming.h"
#include "watcher/memory-full.h"
#include "watcher/stream/missing-namespaces.h"
#include "watcher/stream/stream.h"

#define INITIAL_EVENTS_END "k8s.io/initial-events-end"

static void end_stream_with(struct stream *stream, enum kube_failure failure, const char *text)
{
        kube_error_set(&stream->stream_error, failure, "%s", text);
}

static int take_annotation(struct span key, struct span value, void *userdata)
{
        bool *end = userdata;

        if (scan_string_equals(key, INITIAL_EVENTS_END))
                *end = scan_string_equals(value, "true");
        return 0;
}

/* Only the bookmark with this mark ends the list; before it, other bookmarks mean nothing. */
static int take_initial_bookmark(struct stream *stream, const struct scan_object *object,
                                 const char *version)
{
        bool end = false;
        int r = object->annotations.start ? scan_members(object->annotations, take_annotation, &end) : 0;

        if (r < 0)
                return -EBADMSG;
        if (!end)
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
        kube_error_from_status(&stream->stream_error, 0, object.start, object.size);
        return -ECANCELED;
}

struct event {
        struct span type, object;
};

static int take_event_member(struct span key, struct span value, void *userdata)
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

int event_take(const char *line, size_t size, void *userdata)
{
        struct stream *stream = userdata;
        struct event event = {0};
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
                r = scan_members(whole, take_event_member, &event);
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
