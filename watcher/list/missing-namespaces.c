/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces that a watch names and that do not exist: the server lists nothing in them and says nothing,
 * and a slip of the pen looks like a namespace without objects. So after each sync the server is asked for
 * those that have not been seen; one that is missing is logged once, shown in the status, and asked for each
 * minute. Without the right to ask (403) nothing is told, and nothing is asked again.
 */
#include <errno.h>

#include "base/duration.h"
#include "ipc/message-id.h"
#include "watcher/watcher.h"

#define AGAIN_USEC   USEC_PER_MINUTE
#define TIMEOUT_USEC (30 * USEC_PER_SEC)

static void ask_next(struct watcher *watcher);

void namespace_found(struct stream *stream)
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
                          "watch %s: namespace %s does not exist: nothing is handled there until somebody "
                          "makes it; correct 'namespaces' if it is misspelt",
                          watch, stream->namespace_name);
        stream->presence = NAMESPACE_MISSING;
}

static void on_answer(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                      void *userdata)
{
        struct watcher *watcher = userdata;
        struct stream *stream = &watcher->stream[watcher->namespace_asked];

        watcher->namespace_question = NULL;
        if (watcher_is_over(watcher))
                return;
        if (response->error.failure == KUBE_FAILURE_NONE)
                namespace_found(stream);
        else if (response->error.failure == KUBE_FAILURE_HTTP && response->http_status == 404)
                note_missing(stream);
        else if (response->error.failure == KUBE_FAILURE_HTTP && response->http_status == 403)
                stream->presence = NAMESPACE_HIDDEN;
        watcher->namespace_asked++;
        ask_next(watcher);
}

static int ask(struct stream *stream)
{
        struct watcher *watcher = stream->watcher;
        _cleanup_text_ struct text path = TEXT_EMPTY;
        struct kube_request request = {
                .method = "GET", .timeout_usec = TIMEOUT_USEC, .on_done = on_answer, .userdata = watcher};

        text_printf(&path, "/api/v1/namespaces/%s", stream->namespace_name);
        request.path = path.data;
        return path.failed ? -ENOMEM
                           : kube_client_start(watcher->client, &request, &watcher->namespace_question);
}

static int on_again(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct watcher *watcher = userdata;

        watcher->namespace_timer = sd_event_source_disable_unref(watcher->namespace_timer);
        namespaces_look(watcher);
        return 0;
}

/* One question after the other; a question that cannot be asked is asked with the next round. */
static void ask_next(struct watcher *watcher)
{
        bool missing = false;

        for (size_t i = 0; i < watcher->stream_count; i++)
                missing = missing || watcher->stream[i].presence == NAMESPACE_MISSING;
        for (; watcher->namespace_asked < watcher->stream_count; watcher->namespace_asked++) {
                struct stream *stream = &watcher->stream[watcher->namespace_asked];

                if (stream->namespace_name[0] && stream->presence != NAMESPACE_FOUND &&
                    stream->presence != NAMESPACE_HIDDEN && ask(stream) >= 0)
                        return;
        }
        if (missing)
                (void)sd_event_add_time_relative(watcher->child->event, &watcher->namespace_timer,
                                                 CLOCK_MONOTONIC, AGAIN_USEC, 0, on_again, watcher);
}

void namespaces_look(struct watcher *watcher)
{
        if (watcher->namespace_question || watcher->namespace_timer || watcher_is_over(watcher))
                return;
        watcher->namespace_asked = 0;
        ask_next(watcher);
}

char *namespaces_missing(const struct watcher *watcher)
{
        struct text text = TEXT_EMPTY;
        size_t count = 0;

        for (size_t i = 0; i < watcher->stream_count; i++)
                if (watcher->stream[i].presence == NAMESPACE_MISSING && ++count <= NAMESPACES_TOLD)
                        text_printf(&text, "%s%s", count > 1 ? ", " : "", watcher->stream[i].namespace_name);
        if (count > NAMESPACES_TOLD)
                text_printf(&text, " and %zu more", count - NAMESPACES_TOLD);
        return text_take(&text);
}
