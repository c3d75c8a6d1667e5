/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/list/probe.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "ipc/message-id.h"
#include "watcher/apply/synced.h"
#include "watcher/failures.h"
#include "watcher/setup.h"
#include "watcher/store-failure.h"
#include "watcher/stream/stream-request.h"

#define PROBE_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define PATIENCE_MIN_USEC  USEC_PER_SEC

static int probe_ask(struct stream *stream);

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
static void settle(struct stream *stream)
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
        settle(stream);
}

static int on_probe_retry(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct stream *stream = userdata;

        stream->probe.timer = sd_event_source_disable_unref(stream->probe.timer);
        (void)probe_ask(stream); /* a failure was reported */
        return 0;
}

static void ask_in(struct stream *stream, uint64_t delay_usec)
{
        retry_timer_start(stream->watcher, &stream->probe.timer, delay_usec, on_probe_retry, stream);
}

static void probe_failed(struct stream *stream, const struct kube_error *cause, uint64_t serial)
{
        struct watcher *watcher = stream->watcher;
        struct kube_error error = *cause; /* all but the message is borrowed */
        int64_t delay;
        _cleanup_free_ char *message =
                format_string("the server cannot be asked for its current version (?limit=1): %s",
                              cause->message ? cause->message : "the answer is not a list");

        if (error.failure == KUBE_FAILURE_NONE)
                error.failure = KUBE_FAILURE_PROTOCOL;
        error.message = message;
        delay = failures_note(watcher, &stream->probe.failures, &error, serial);
        if (delay < 0)
                return; /* past the deadline */
        ask_in(stream, (uint64_t)delay);
        settle(stream);
}

/* A server that refuses the question as such is not asked again: the watch itself works. */
static bool is_refusal(const struct kube_error *error)
{
        return error->failure == KUBE_FAILURE_HTTP && error->http_status >= 400 &&
               error->http_status < 500 && !kube_error_is_passing(error);
}

static void on_probe_done(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                          void *userdata)
{
        struct stream *stream = userdata;
        _cleanup_free_ char *version = NULL;

        stream->probe.transfer = NULL;
        stream->probe.waited_usec = 0;
        if (watcher_is_over(stream->watcher))
                return;
        if (is_refusal(&response->error)) {
                passed(stream);
                return;
        }
        if (response->error.failure == KUBE_FAILURE_NONE)
                version = probed_version(response);
        if (!version) {
                probe_failed(stream, &response->error, response->credential_serial);
        } else if (resource_version_less(version, stream->watched_version)) {
                probe_found_older(stream, version);
        } else {
                passed(stream);
        }
}

/* A question that ends with its watch, and is asked again beside the next one, counts as one question:
 * otherwise, if watches ended sooner than its timeout, an unanswered question would never fail. */
static uint64_t patience(const struct stream *stream)
{
        uint64_t waited = stream->probe.waited_usec;

        return waited + PATIENCE_MIN_USEC < PROBE_TIMEOUT_USEC ? PROBE_TIMEOUT_USEC - waited
                                                               : PATIENCE_MIN_USEC;
}

static int probe_ask(struct stream *stream)
{
        struct watcher *watcher = stream->watcher;
        _cleanup_free_ char *path = request_path(stream, REQUEST_PROBE);
        struct kube_request request = {
                .method = "GET",
                .path = path,
                .accept = request_accept(watcher, REQUEST_PROBE),
                .timeout_usec = patience(stream),
                .on_done = on_probe_done,
                .userdata = stream,
        };
        int r;

        failures_held(watcher, &stream->probe.failures);
        if (watcher->throttle_until > clock_boottime_usec())
                settle(stream); /* the answer may be an hour away */
        stream->probe.asked = clock_boottime_usec();
        r = path ? kube_client_start(watcher->client, &request, &stream->probe.transfer) : -ENOMEM;
        if (r < 0)
                return child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                                   "a request cannot be started: %s", strerror(-r));
        return 0;
}

/* Watches that come and go do not make questions more frequent than their failures allow. */
void probe_start(struct stream *stream)
{
        uint64_t now = clock_boottime_usec(), retry = stream->probe.failures.retry_boottime;

        if (!stream->probe.due || stream->probe.transfer || stream->probe.timer)
                return;
        if (stream->connection_lost)
                setup_identify(stream->watcher);
        if (stream->probe.failures.count > 0 && retry > now)
                ask_in(stream, retry - now);
        else
                (void)probe_ask(stream); /* a failure was reported */
}
