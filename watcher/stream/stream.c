/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/stream/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "watcher/stream/refused-namespaces.h"

#define NAMES_TOLD 8

int streams_new(struct watcher *watcher)
{
        size_t count = watcher->patterns ? 0 : watcher->config->namespace_count;

        watcher->stream = calloc(count ? count : 1, sizeof(struct stream));
        if (!watcher->stream)
                return -ENOMEM;
        watcher->stream_count = count ? count : 1;
        for (size_t i = 0; i < watcher->stream_count; i++) {
                struct stream *stream = &watcher->stream[i];

                stream->watcher = watcher;
                stream->namespace_name = count ? watcher->config->namespace[i].value : "";
                stream->stream_error = KUBE_ERROR_NONE;
                stream->resource_version = strdup("");
                stream->watched_version = strdup("");
                stream->continue_token = strdup("");
                if (!stream->resource_version || !stream->watched_version || !stream->continue_token)
                        return -ENOMEM;
        }
        return 0;
}

void stream_give_up(struct stream *stream)
{
        kube_transfer_cancel(TAKE_PTR(stream->transfer));
        if (stream->lister)
                fiber_cancel(TAKE_PTR(stream->lister));
        if (stream->probe.fiber)
                fiber_cancel(TAKE_PTR(stream->probe.fiber));
        stream->timer = sd_event_source_disable_unref(stream->timer);
        kube_error_done(&stream->stream_error);
        frame_reset(&stream->frame); /* a fragment is no event; the whole line comes again */
}

void streams_stop(struct watcher *watcher)
{
        for (size_t i = 0; i < watcher->stream_count; i++) {
                stream_give_up(&watcher->stream[i]);
                watcher->stream[i].state = STREAM_STOPPED;
        }
}

void streams_free(struct watcher *watcher)
{
        FOREACH_ARRAY(stream, watcher->stream, watcher->stream_count) {
                stream_give_up(stream);
                failures_done(&stream->failures);
                failures_done(&stream->probe.failures);
                frame_done(&stream->frame);
                free(stream->resource_version);
                free(stream->watched_version);
                free(stream->continue_token);
        }
        free(watcher->stream);
        watcher->stream = NULL;
        watcher->stream_count = 0;
}

static bool in_namespace(const char *key, const char *namespace_name)
{
        size_t length = strlen(namespace_name);

        return length == 0 || (strncmp(key, namespace_name, length) == 0 && key[length] == '/');
}

bool stream_has_key(const struct stream *stream, const char *key)
{
        return in_namespace(key, stream->namespace_name);
}

struct stream *stream_of_key(struct watcher *watcher, const char *key)
{
        for (size_t i = 0; i < watcher->stream_count; i++)
                if (in_namespace(key, watcher->stream[i].namespace_name))
                        return &watcher->stream[i];
        return NULL;
}

int stream_set_resource_version(struct stream *stream, const char *version)
{
        char *copy = strdup(version);

        if (!copy)
                return -ENOMEM;
        free(stream->resource_version);
        stream->resource_version = copy;
        stream->position_changed = true;
        return 0;
}

void stream_timer_arm(struct stream *stream, uint64_t usec, sd_event_time_handler_t handler)
{
        struct watcher *watcher = stream->watcher;
        int r;

        if (stream->timer) {
                r = sd_event_source_set_time_relative(stream->timer, usec);
                if (r >= 0)
                        r = sd_event_source_set_enabled(stream->timer, SD_EVENT_ONESHOT);
        } else {
                r = sd_event_add_time_relative(watcher->child->event, &stream->timer, CLOCK_BOOTTIME, usec,
                                               USEC_PER_MSEC, handler, stream);
        }
        if (r < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, "no memory for a timer");
}

void stream_succeeded(struct stream *stream)
{
        stream->refreshed = false;
        failures_clear(stream->watcher, &stream->failures);
        refused_namespaces_over(stream);
}

bool stream_is_refused(const struct stream *stream)
{
        const struct watcher *watcher = stream->watcher;

        for (size_t i = 0; i < watcher->stream_count && stream->failures.refused; i++)
                if (!watcher->stream[i].failures.refused)
                        return true;
        return false;
}

bool streams_are_synced(const struct watcher *watcher)
{
        for (size_t i = 0; i < watcher->stream_count; i++)
                if (!watcher->stream[i].synced)
                        return false;
        return true;
}

size_t streams_count(const struct watcher *watcher, bool (*is_meant)(const struct stream *stream))
{
        size_t count = 0;

        for (size_t i = 0; i < watcher->stream_count; i++)
                count += is_meant(&watcher->stream[i]);
        return count;
}

char *streams_names(const struct watcher *watcher, bool (*is_meant)(const struct stream *stream))
{
        struct text text = TEXT_EMPTY;
        size_t count = 0;

        for (size_t i = 0; i < watcher->stream_count; i++)
                if (is_meant(&watcher->stream[i]) && ++count <= NAMES_TOLD)
                        text_printf(&text, "%s%s", count > 1 ? ", " : "", watcher->stream[i].namespace_name);
        if (count > NAMES_TOLD)
                text_printf(&text, " and %zu more", count - NAMES_TOLD);
        return text_take(&text);
}
