/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/list/list.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "object/scan-list.h"
#include "store/writer.h"
#include "watcher/apply/announce-owner.h"
#include "watcher/apply/announce.h"
#include "watcher/apply/incoming.h"
#include "watcher/apply/scope.h"
#include "watcher/list/probe.h"
#include "watcher/list/watch-stream.h"
#include "watcher/store-failure.h"
#include "watcher/stream/stream-request.h"

/* a server ends requests other than watches after the same time */
#define PAGE_TIMEOUT_USEC (60 * USEC_PER_SEC)
#define ITEM_MAX          ((size_t)16 * 1024 * 1024)

static int on_item(const char *item, size_t size, void *userdata)
{
        struct stream *stream = userdata;

        return item ? apply_object(stream, item, size, true) : apply_skipped(stream);
}

/* ---- a page that does not come, or does not go on */

static void page_end(struct stream *stream)
{
        stream->transfer = NULL;
        stream->timer = sd_event_source_disable_unref(stream->timer);
}

static enum phase phase_of(const struct stream *stream)
{
        return stream->continue_token[0] && !stream->list_unpaged ? PHASE_CONTINUE : PHASE_LIST;
}

/* A page comes in thousands of pieces. Each is noted (failures_progress), and only when this timer goes
 * off is the real silence measured. */
static int on_silence(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct stream *stream = userdata;
        _cleanup_kube_error_ struct kube_error error = KUBE_ERROR_NONE;
        uint64_t silence = clock_boottime_usec() - stream->failures.progress_boottime,
                 stall = stream->watcher->config->stall_usec;

        if (silence < stall) {
                stream_timer_arm(stream, stall - silence, on_silence);
                return 0;
        }
        kube_transfer_cancel(stream->transfer);
        page_end(stream);
        kube_error_set(&error, KUBE_FAILURE_TIMEOUT, "the requested list does not arrive");
        stream_failed(stream, phase_of(stream), &error, 0);
        return 0;
}

/* The time for which Retry-After holds a request back is not silence. */
static void expect_page(struct stream *stream)
{
        uint64_t now = clock_boottime_usec(), until = stream->watcher->throttle_until;

        stream_timer_arm(stream, stream->watcher->config->stall_usec + (until > now ? until - now : 0),
                         on_silence);
}

/* ---- what comes */

static int on_list_data(struct kube_transfer *transfer _unused_, const char *bytes, size_t size,
                        void *userdata)
{
        struct stream *stream = userdata;
        int r = scan_list_feed(stream->list, bytes, size);

        failures_progress(&stream->failures);
        if (r >= 0)
                return announce_in_time(stream->watcher);
        if (!watcher_is_over(stream->watcher) && stream->stream_error.failure == KUBE_FAILURE_NONE)
                kube_error_set(&stream->stream_error, KUBE_FAILURE_PROTOCOL,
                               "the server's list cannot be read%s",
                               r == -EMSGSIZE ? ": a part of it is larger than 16 MiB" : "");
        return r;
}

/* The list is consistent and older than what is known: the database went back in time. */
static bool is_older(const struct stream *stream, const char *version)
{
        return !stream->list_replaces && resource_version_less(version, stream->resource_version);
}

static void page_failed(struct stream *stream, const char *text)
{
        _cleanup_kube_error_ struct kube_error error = KUBE_ERROR_NONE;

        kube_error_set(&error, KUBE_FAILURE_PROTOCOL, "%s", text);
        stream_failed(stream, PHASE_LIST, &error, 0);
}

static void page_finished(struct stream *stream)
{
        struct scan_list_metadata metadata;
        int r = scan_list_finish(stream->list, &metadata);

        if (r < 0 || metadata.resource_version[0] == '\0') {
                page_failed(stream, "the server's list ended in the middle");
                return;
        }
        if (is_older(stream, metadata.resource_version)) {
                probe_found_older(stream, metadata.resource_version);
                return;
        }
        if (scan_list_is_endless(&metadata, stream->continue_token)) {
                page_failed(stream, SCAN_LIST_ENDLESS);
                return;
        }
        stream->progress.shown_in_pages = stream->progress.shown;
        stream->progress.left = metadata.remaining_items;
        free(stream->continue_token);
        stream->continue_token = strdup(metadata.continue_token);
        if (!stream->continue_token) {
                child_fatal(stream->watcher->child, EXIT_CODE_SOFTWARE, NULL, NULL, "no memory");
        } else if (stream->continue_token[0]) {
                list_page(stream);
        } else {
                stream_listed(stream, metadata.resource_version);
                if (!watcher_is_over(stream->watcher))
                        watch_start(stream);
        }
}

static void on_list_done(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                         void *userdata)
{
        struct stream *stream = userdata;
        _cleanup_kube_error_ struct kube_error error = stream->stream_error;
        enum phase phase = phase_of(stream);

        page_end(stream);
        stream->stream_error = KUBE_ERROR_NONE;
        if (watcher_is_over(stream->watcher))
                return;
        if (error.failure != KUBE_FAILURE_NONE)
                stream_failed(stream, phase, &error, 0);
        else if (response->error.failure == KUBE_FAILURE_NONE)
                page_finished(stream);
        else
                stream_failed(stream, phase, &response->error, response->credential_serial);
}

void list_page(struct stream *stream)
{
        struct watcher *watcher = stream->watcher;
        _cleanup_free_ char *path = request_path(stream, REQUEST_LIST);
        struct kube_request request = {
                .method = "GET",
                .path = path,
                .accept = request_accept(watcher, REQUEST_LIST),
                .timeout_usec = PAGE_TIMEOUT_USEC,
                .on_data = on_list_data,
                .on_done = on_list_done,
                .userdata = stream,
        };
        int r;

        stream->timer = sd_event_source_disable_unref(stream->timer);
        stream->state = STREAM_LISTING;
        stream->progress.shown = stream->progress.shown_in_pages; /* a page that broke off comes again */
        failures_held(watcher, &stream->failures);
        scan_list_free(stream->list);
        stream->list = NULL;
        r = path ? scan_list_new(ITEM_MAX, on_item, stream, &stream->list) : -ENOMEM;
        if (r >= 0)
                r = kube_client_start(watcher->client, &request, &stream->transfer);
        if (r >= 0)
                expect_page(stream);
        else
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                            "a LIST cannot be started: %s", strerror(-r));
}

/* A first list into an empty store is announced by a sweep. Objects that are stored already may be gone,
 * so there the list itself decides what to announce. */
static int begin_sweep(struct watcher *watcher)
{
        if (watcher->first_synced || watcher->announce.sweep.is_on || is_owned(watcher) ||
            store_count(watcher->store) > 0)
                return 0;
        return sweep_begin(&watcher->announce.sweep);
}

void list_start(struct stream *stream)
{
        struct watcher *watcher = stream->watcher;
        int r;

        stream->timer = sd_event_source_disable_unref(stream->timer);
        /* A LIST answers the same question, and has its own failures. */
        failures_forget(watcher, &stream->probe.failures);
        stream->list_incomplete = stream->resumed = false;
        stream->progress.listing = true;
        stream->progress.shown = stream->progress.shown_in_pages = 0;
        stream->progress.left = -1;
        stream->mark = ++watcher->meta.mark;
        if (watcher->first_mark == 0)
                watcher->first_mark = stream->mark;
        stream->continue_token[0] = '\0';
        /* The number is on record before any object carries it, so no later LIST can have the same. */
        r = meta_save(watcher, false);
        store_expect_order(watcher->store);
        if (r >= 0)
                r = begin_sweep(watcher);
        if (r < 0)
                store_failed(watcher, r);
        else if (request_may_stream_list(stream))
                watch_initial(stream);
        else
                list_page(stream);
}
