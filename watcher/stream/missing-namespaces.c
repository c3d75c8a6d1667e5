/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/stream/missing-namespaces.h"

#include <errno.h>

#include "base/duration.h"
#include "ipc/message-id.h"
#include "watcher/store-failure.h"

#define AGAIN_USEC   USEC_PER_MINUTE
#define TIMEOUT_USEC (30 * USEC_PER_SEC)

static void ask_next(struct watcher *watcher);

void missing_namespaces_found(struct stream *stream)
{
        if (stream->presence == NAMESPACE_MISSING)
                log_info("watch %s: namespace %s exists now", stream->watcher->config->watch,
                         stream->namespace_name);
        stream->presence = NAMESPACE_FOUND;
}

static void note_missing(struct stream *stream)
{
        const char *watch = stream->watcher->config->watch;

        if (stream->presence != NAMESPACE_MISSING)
                log_write(LOG_WARNING, MESSAGE_ID_NAMESPACE_MISSING, LOG_FIELDS({"RECONCILED_WATCH", watch}),
                          "watch %s: namespace %s does not exist: nothing is handled there until it is "
                          "created; correct 'namespaces' if it is misspelt",
                          watch, stream->namespace_name);
        stream->presence = NAMESPACE_MISSING;
}

static void on_answer(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                      void *userdata)
{
        struct watcher *watcher = userdata;
        struct stream *stream = &watcher->stream[watcher->namespaces.asked];

        watcher->namespaces.question = NULL;
        if (watcher_is_over(watcher))
                return;
        if (response->error.failure == KUBE_FAILURE_NONE)
                missing_namespaces_found(stream);
        else if (response->error.failure == KUBE_FAILURE_HTTP && response->http_status == 404)
                note_missing(stream);
        else if (response->error.failure == KUBE_FAILURE_HTTP && response->http_status == 403)
                stream->presence = NAMESPACE_HIDDEN;
        watcher->namespaces.asked++;
        ask_next(watcher);
}

static int namespaces_ask(struct stream *stream)
{
        struct watcher *watcher = stream->watcher;
        _cleanup_text_ struct text path = TEXT_EMPTY;
        struct kube_request request = {
                .method = "GET", .timeout_usec = TIMEOUT_USEC, .on_done = on_answer, .userdata = watcher};

        text_printf(&path, "/api/v1/namespaces/%s", stream->namespace_name);
        request.path = path.data;
        return path.failed ? -ENOMEM
                           : kube_client_start(watcher->client, &request, &watcher->namespaces.question);
}

static int on_namespaces_again(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct watcher *watcher = userdata;

        watcher->namespaces.timer = sd_event_source_disable_unref(watcher->namespaces.timer);
        missing_namespaces_look(watcher);
        return 0;
}

/* Asks one question after the other; one that cannot be asked waits for the next round. */
static void ask_next(struct watcher *watcher)
{
        for (; watcher->namespaces.asked < watcher->stream_count; watcher->namespaces.asked++) {
                struct stream *stream = &watcher->stream[watcher->namespaces.asked];

                if (stream->namespace_name[0] && stream->presence != NAMESPACE_FOUND &&
                    stream->presence != NAMESPACE_HIDDEN && namespaces_ask(stream) >= 0)
                        return;
        }
        if (streams_count(watcher, missing_namespaces_has) > 0)
                (void)sd_event_add_time_relative(watcher->child->event, &watcher->namespaces.timer,
                                                 CLOCK_MONOTONIC, AGAIN_USEC, 0, on_namespaces_again,
                                                 watcher);
}

void missing_namespaces_look(struct watcher *watcher)
{
        if (watcher->namespaces.question || watcher->namespaces.timer || watcher_is_over(watcher))
                return;
        watcher->namespaces.asked = 0;
        ask_next(watcher);
}

bool missing_namespaces_has(const struct stream *stream)
{
        return stream->presence == NAMESPACE_MISSING;
}
