/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/list/probe.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"
#include "ipc/message-id.h"
#include "watcher/apply/synced.h"
#include "watcher/asking.h"
#include "watcher/failures.h"
#include "watcher/list/transitions.h"
#include "watcher/setup.h"
#include "watcher/stream/stream-request.h"

#define PROBE_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define PATIENCE_MIN_USEC  USEC_PER_SEC
#define IS_OVER            (-1)

void probe_found_older(struct stream *stream, const char *found)
{
        struct watcher *watcher = stream->watcher;

        log_write(
                LOG_ERR, MESSAGE_ID_DATABASE_RESTORED,
                LOG_FIELDS({"RECONCILED_WATCH", watcher->config->watch}),
                "watch %s: the API server is at resourceVersion %s, but was at %s before: its database was "
                "restored from an older state; everything that this watch knows is replaced by a new list",
                watcher->config->watch, found, stream->resource_version);
        stream_replace(stream);
}

/* The version of the list itself, which has at most one item. NULL: it cannot be read. */
static char *probed_version(const struct kube_response *response)
{
        struct scan_object list;
        char *version = NULL;

        if (scan_object(response->body, response->body_size, &list) < 0 ||
            scan_string(list.resource_version, &version) < 0)
                return NULL;
        return version;
}

/* The store of the last life is believed, and the watch goes on from there. */
static void probe_settle(struct stream *stream)
{
        if (!stream->resumed || stream->synced)
                return;
        stream->synced = true;
        stream->watcher->count.resumed++;
        synced_tell(stream->watcher);
}

void probe_answered(struct stream *stream)
{
        stream->probe.due = stream->connection_lost = false;
        stream->probe.waited_usec = 0;
        failures_forget(stream->watcher, &stream->probe.failures);
}

static void passed(struct stream *stream)
{
        probe_answered(stream);
        probe_settle(stream);
}

/* Returns the delay until it is asked again; negative: past the deadline. */
static int64_t probe_failed(struct stream *stream, const struct kube_error *cause, uint64_t serial)
{
        struct kube_error error = *cause; /* all but the message is borrowed */
        int64_t delay;
        _cleanup_free_ char *message =
                format_string("the server cannot be asked for its current version (?limit=1): %s",
                              cause->message ? cause->message : "the answer is not a list");

        if (error.failure == KUBE_FAILURE_NONE)
                error.failure = KUBE_FAILURE_PROTOCOL;
        error.message = message;
        delay = failures_note(stream->watcher, &stream->probe.failures, &error, serial);
        if (delay >= 0)
                probe_settle(stream);
        return delay;
}

/* A server that refuses the question as such is not asked again: the watch itself works. */
static bool is_refusal(const struct kube_error *error)
{
        return error->failure == KUBE_FAILURE_HTTP && error->http_status >= 400 &&
               error->http_status < 500 && !kube_error_is_passing(error);
}

/* Returns the delay until it is asked again; negative: it is over. */
static int64_t judge_probe(struct stream *stream, const struct kube_response *response)
{
        _cleanup_free_ char *version = NULL;

        stream->probe.waited_usec = 0;
        if (is_refusal(&response->error)) {
                passed(stream);
                return IS_OVER;
        }
        if (response->error.failure == KUBE_FAILURE_NONE)
                version = probed_version(response);
        if (!version)
                return probe_failed(stream, &response->error, response->credential_serial);
        if (resource_version_less(version, stream->watched_version))
                probe_found_older(stream, version);
        else
                passed(stream);
        return IS_OVER;
}

/* A question that ends with its watch, and is asked again beside the next one, counts as one question:
 * otherwise, if watches ended sooner than its timeout, an unanswered question would never fail. */
static uint64_t probe_patience(const struct stream *stream)
{
        uint64_t waited = stream->probe.waited_usec;

        return waited + PATIENCE_MIN_USEC < PROBE_TIMEOUT_USEC ? PROBE_TIMEOUT_USEC - waited
                                                               : PATIENCE_MIN_USEC;
}

/* Returns the delay until it is asked again; negative: it is over. */
static int64_t probe_once(struct stream *stream) _suspends_
{
        struct watcher *watcher = stream->watcher;
        _cleanup_free_ char *path = request_path(stream, REQUEST_PROBE);
        struct kube_request request = {
                .method = "GET",
                .path = path,
                .accept = request_accept(watcher, REQUEST_PROBE),
                .timeout_usec = probe_patience(stream),
        };
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        uint64_t asked = clock_boottime_usec();
        int r;

        failures_held(watcher, &stream->probe.failures);
        if (watcher->throttle_until > asked)
                probe_settle(stream); /* the answer may be an hour away */
        r = path ? asking_ask(watcher, &request, &answer) : -ENOMEM;
        if (r == -ECANCELED)
                stream->probe.waited_usec += clock_boottime_usec() - asked;
        return r < 0 ? asking_failed(watcher, r) : judge_probe(stream, &answer.response);
}

/* The fiber: until there is an answer, or the watch beside which it asks has ended. Watches that come and go do not make
 * questions more frequent than their failures allow. */
static void probe(void *userdata) _suspends_
{
        struct stream *stream = userdata;
        uint64_t now = clock_boottime_usec(), retry = stream->probe.failures.retry_boottime;
        int64_t delay = stream->probe.failures.count > 0 && retry > now ? (int64_t)(retry - now) : 0;

        while (delay >= 0 && !fiber_is_ending(fiber_current()) &&
               (delay == 0 || asking_pause(stream->watcher, (uint64_t)delay, NULL) >= 0))
                delay = probe_once(stream);
        if (stream->probe.fiber == fiber_current())
                stream->probe.fiber = NULL;
}

void probe_start(struct stream *stream)
{
        if (!stream->probe.due || stream->probe.fiber)
                return;
        if (stream->connection_lost)
                setup_identify(stream->watcher);
        asking_start(stream->watcher, "probe", probe, stream, &stream->probe.fiber);
}
