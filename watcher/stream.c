/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's transitions: what a reaction does to its state. */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "watcher/watcher.h"

int streams_new(struct watcher *watcher)
{
        size_t count = watcher->config->namespace_count;

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
                stream->continue_token = strdup("");
                if (!stream->resource_version || !stream->continue_token)
                        return -ENOMEM;
        }
        return 0;
}

void streams_free(struct watcher *watcher)
{
        for (size_t i = 0; i < watcher->stream_count; i++) {
                struct stream *stream = &watcher->stream[i];

                kube_transfer_cancel(stream->transfer);
                sd_event_source_disable_unref(stream->timer);
                scan_list_free(stream->list);
                frame_done(&stream->frame);
                kube_error_done(&stream->stream_error);
                free(stream->resource_version);
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

struct stream *stream_of_key(struct watcher *watcher, const char *key)
{
        for (size_t i = 0; i < watcher->stream_count; i++)
                if (in_namespace(key, watcher->stream[i].namespace_name))
                        return &watcher->stream[i];
        return NULL;
}

/* What stands behind a URL may change: a later LIST first asks whether this is still the same cluster. */
static void list_again(struct stream *stream)
{
        if (!stream->watcher->first_synced) {
                list_start(stream);
                return;
        }
        stream->timer = sd_event_source_disable_unref(stream->timer);
        stream->state = STREAM_STOPPED;
        setup_identify(stream->watcher);
}

void streams_start(struct watcher *watcher)
{
        for (size_t i = 0; i < watcher->stream_count; i++)
                if (watcher->stream[i].state == STREAM_STOPPED && !watcher->stream[i].timer)
                        list_start(&watcher->stream[i]);
}

/* A stream that runs outlives its old credential. */
void streams_resume(struct watcher *watcher)
{
        for (size_t i = 0; i < watcher->stream_count; i++) {
                struct stream *stream = &watcher->stream[i];

                if (stream->state == STREAM_WAITING_TO_WATCH)
                        watch_start(stream);
                else if (stream->state == STREAM_WAITING_TO_LIST)
                        list_again(stream);
        }
}

int stream_set_resource_version(struct stream *stream, const char *version)
{
        char *copy = strdup(version);

        if (!copy)
                return -ENOMEM;
        free(stream->resource_version);
        stream->resource_version = copy;
        return 0;
}

static int on_wait_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct stream *stream = userdata;

        stream->timer = sd_event_source_disable_unref(stream->timer);
        if (stream->state == STREAM_WAITING_TO_LIST)
                list_again(stream);
        else if (stream->state == STREAM_WAITING_TO_WATCH)
                watch_start(stream);
        else if (stream->state == STREAM_STOPPED)
                setup_rediscover(stream->watcher);
        return 0;
}

static void wait_in(struct stream *stream, enum stream_state state, uint64_t delay_usec)
{
        struct watcher *watcher = stream->watcher;

        stream->state = state;
        stream->timer = sd_event_source_disable_unref(stream->timer);
        if (sd_event_add_time_relative(watcher->child->event, &stream->timer, CLOCK_BOOTTIME, delay_usec, 1,
                                       on_wait_over, stream) < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                            "no memory for a timer");
}

void stream_react(struct stream *stream, enum reaction reaction, uint64_t delay_usec)
{
        switch (reaction) {
        case REACT_LIST_UNPAGED:
                stream->list_unpaged = true;
                list_start(stream);
                return;
        case REACT_LIST_NOW:
                list_again(stream);
                return;
        case REACT_LIST_LATER:
        case REACT_REFRESH_LIST:
                wait_in(stream, STREAM_WAITING_TO_LIST, delay_usec);
                return;
        case REACT_WATCH_NOW:
                watch_start(stream);
                return;
        case REACT_WATCH_LATER:
        case REACT_REFRESH_WATCH:
                wait_in(stream, STREAM_WAITING_TO_WATCH, delay_usec);
                return;
        case REACT_REDISCOVER:
                wait_in(stream, STREAM_STOPPED, delay_usec);
                return;
        case REACT_FATAL:
        case REACTION_COUNT:
                break;
        }
        child_fatal(stream->watcher->child, EXIT_CODE_SOFTWARE, stream->watcher->config->watch, NULL,
                    "no reaction is defined for what happened (%d)", (int)reaction);
}

void stream_failed(struct stream *stream, enum phase phase, const struct kube_error *error, uint64_t serial)
{
        struct watcher *watcher = stream->watcher;
        enum reaction reaction = reaction_to(phase, answer_of(error));
        int64_t delay = 0;

        /* What is lost is lost: a LIST at once finds it, and is no trouble unless it fails itself, or leads
         * here again and again. */
        if (reaction == REACT_LIST_NOW) {
                delay = (int64_t)trouble_pace(watcher, &stream->trouble);
                reaction = delay > 0 ? REACT_LIST_LATER : REACT_LIST_NOW;
        } else if (reaction != REACT_LIST_UNPAGED) {
                delay = trouble_note(watcher, &stream->trouble, error, serial);
                if (delay < 0)
                        return;
        }
        log_debug("watch %s: %s (%s); next attempt in %lld ms", watcher->config->watch,
                  error->message ? error->message : "", kube_failure_name(error->failure),
                  (long long)delay / 1000);
        stream_react(stream, reaction, (uint64_t)delay);
}

void stream_succeeded(struct stream *stream)
{
        trouble_clear(stream->watcher, &stream->trouble);
}
