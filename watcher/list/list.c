/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/list/list.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "store/writer.h"
#include "watcher/apply/announce-owner.h"
#include "watcher/apply/incoming.h"
#include "watcher/apply/scope.h"
#include "watcher/asking.h"
#include "watcher/list/probe.h"
#include "watcher/list/transitions.h"
#include "watcher/list/watch-stream.h"
#include "watcher/store-failure.h"
#include "watcher/stream/stream-request.h"

static int on_listed_item(const char *item, size_t size, void *userdata)
{
        struct stream *stream = userdata;

        return item ? apply_object(stream, item, size, true) : apply_skipped(stream);
}

/* ---- a page that does not come, or does not go on */

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
        stream_give_up(stream);
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

/* The list is consistent and older than what is known: the database went back in time. */
static bool is_older(const struct stream *stream, const char *version)
{
        return !stream->list_replaces && resource_version_less(version, stream->resource_version);
}

/* Returns 1: another page follows; 0: the list has ended, well or not; -ECANCELED. */
static int take_page(struct stream *stream, struct page *page)
{
        const struct scan_list_metadata *metadata = &page->metadata;
        char *token;

        if (stream->stream_error.failure != KUBE_FAILURE_NONE) { /* it says more */
                page_done(page);
                page->error = stream->stream_error;
                stream->stream_error = KUBE_ERROR_NONE;
        }
        if (page->error.failure != KUBE_FAILURE_NONE || is_older(stream, metadata->resource_version))
                return 0;
        token = strdup(metadata->continue_token);
        if (!token)
                return asking_failed(stream->watcher, -ENOMEM);
        free(stream->continue_token);
        stream->continue_token = token;
        stream->progress.shown_in_pages = stream->progress.shown;
        stream->progress.left = metadata->remaining_items;
        return token[0] != '\0';
}

/* As take_page(). */
static int ask_for_listed(struct stream *stream, struct page *ret) _suspends_
{
        struct watcher *watcher = stream->watcher;
        _cleanup_free_ char *path = request_path(stream, REQUEST_LIST);
        const struct page_request request = {
                .path = path,
                .accept = request_accept(watcher, REQUEST_LIST),
                .token = stream->continue_token,
                .on_item = on_listed_item,
                .userdata = stream,
                .failures = &stream->failures,
        };
        int r;

        stream->progress.shown = stream->progress.shown_in_pages; /* a page that broke off comes again */
        failures_held(watcher, &stream->failures);
        expect_page(stream);
        r = page_ask(watcher, &request, ret);
        return r < 0 ? r : take_page(stream, ret);
}

static void list_ended(struct stream *stream, const struct page *page)
{
        const char *version = page->metadata.resource_version;

        if (page->error.failure != KUBE_FAILURE_NONE) {
                stream_failed(stream, phase_of(stream), &page->error, page->serial);
        } else if (is_older(stream, version)) {
                probe_found_older(stream, version);
        } else {
                stream_listed(stream, version);
                if (!watcher_is_over(stream->watcher))
                        watch_start(stream);
        }
}

/* The fiber: page after page. What follows from its end may be another one. */
static void list_pages(void *userdata) _suspends_
{
        struct stream *stream = userdata;
        _cleanup_(page_done) struct page page = {.error = KUBE_ERROR_NONE};
        int r = 1;

        while (r > 0 && stream->lister == fiber_current()) {
                page_done(&page);
                r = ask_for_listed(stream, &page);
        }
        if (stream->lister != fiber_current())
                return; /* it was given up, perhaps for another list */
        stream->lister = NULL;
        stream->timer = sd_event_source_disable_unref(stream->timer);
        if (r >= 0)
                list_ended(stream, &page);
}

void list_next_page(struct stream *stream)
{
        stream->timer = sd_event_source_disable_unref(stream->timer);
        stream->state = STREAM_LISTING;
        asking_start(stream->watcher, "a list", list_pages, stream, &stream->lister);
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
                list_next_page(stream);
}
