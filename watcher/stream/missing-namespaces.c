/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/stream/missing-namespaces.h"

#include <errno.h>

#include "base/duration.h"
#include "ipc/message-id.h"
#include "watcher/asking.h"
#include "watcher/store-failure.h"

#define AGAIN_USEC   USEC_PER_MINUTE
#define TIMEOUT_USEC (30 * USEC_PER_SEC)

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

static bool is_in_question(const struct stream *stream)
{
        return stream->namespace_name[0] &&
               (stream->presence == NAMESPACE_UNKNOWN || stream->presence == NAMESPACE_MISSING);
}

static int ask_for_namespace(struct stream *stream) _suspends_
{
        struct watcher *watcher = stream->watcher;
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        _cleanup_free_ char *path = format_string("/api/v1/namespaces/%s", stream->namespace_name);
        struct kube_request request = {.method = "GET", .path = path, .timeout_usec = TIMEOUT_USEC};
        int r = path ? asking_ask(watcher, &request, &answer) : -ENOMEM;
        enum kube_failure failure = answer.response.error.failure;

        if (r < 0)
                return r;
        if (failure == KUBE_FAILURE_NONE)
                missing_namespaces_found(stream);
        else if (failure == KUBE_FAILURE_HTTP && answer.response.http_status == 404)
                note_missing(stream);
        else if (failure == KUBE_FAILURE_HTTP && answer.response.http_status == 403)
                stream->presence = NAMESPACE_HIDDEN;
        return 0;
}

/* The fiber: one question after the other; what cannot be asked waits for the next round. */
static void ask_for_namespaces(void *userdata) _suspends_
{
        struct watcher *watcher = userdata;
        int r = 0;

        do {
                for (size_t i = 0; i < watcher->stream_count && r != -ECANCELED; i++)
                        if (is_in_question(&watcher->stream[i]))
                                r = ask_for_namespace(&watcher->stream[i]);
        } while (r != -ECANCELED && streams_count(watcher, missing_namespaces_has) > 0 &&
                 (r = fiber_sleep(AGAIN_USEC, "missing namespaces")) >= 0);
        watcher->namespaces = NULL;
}

void missing_namespaces_look(struct watcher *watcher)
{
        if (!watcher->namespaces && !watcher_is_over(watcher))
                asking_start(watcher, "missing namespaces", ask_for_namespaces, watcher,
                             &watcher->namespaces);
}

bool missing_namespaces_has(const struct stream *stream)
{
        return stream->presence == NAMESPACE_MISSING;
}
