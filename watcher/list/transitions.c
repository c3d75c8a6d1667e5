/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Circle: list.c, watch-stream.c and probe.c report here how a request ended, and are begun from here, as what follows is one
 * decision. Setup begins the streams, and a stream that doubts what it knows has setup ask again.
 */
#include "watcher/list/transitions.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "watcher/apply/absence.h"
#include "watcher/apply/announce.h"
#include "watcher/apply/synced.h"
#include "watcher/failures.h"
#include "watcher/list/list.h"
#include "watcher/list/probe.h"
#include "watcher/list/watch-stream.h"
#include "watcher/setup.h"
#include "watcher/store-failure.h"
#include "watcher/stream/refused-namespaces.h"
#include "watcher/stream/resume.h"
#include "watcher/stream/stream-request.h"

/* The cluster behind a URL may change, so a later LIST first asks whether it is still the same. */
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

static void stream_go_on(struct stream *stream)
{
        switch (stream->state) {
        case STREAM_WAITING_TO_WATCH:
                watch_start(stream);
                return;
        case STREAM_WAITING_TO_LIST:
                list_again(stream);
                return;
        case STREAM_WAITING_FOR_PAGE:
                list_next_page(stream);
                return;
        case STREAM_STOPPED:
                setup_rediscover(stream->watcher);
                return;
        case STREAM_LISTING:
        case STREAM_INITIAL:
        case STREAM_WATCHING:
        case STREAM_STATE_COUNT:
                break;
        }
}

/* If the store is complete, the stream goes on from its position; else it begins with a list. */
void streams_start(struct watcher *watcher)
{
        FOREACH_ARRAY(stream, watcher->stream, watcher->stream_count) {
                if (stream->state != STREAM_STOPPED || stream->timer)
                        continue;
                if (stream->resumed && !stream->synced)
                        watch_start(stream);
                else
                        list_start(stream);
        }
}

/* A running stream outlives its old credential. A waiting one tries a fresh credential at once, but only
 * once in a row: credentials that are refused again and again must not set the pace. */
void streams_resume(struct watcher *watcher)
{
        FOREACH_ARRAY(stream, watcher->stream, watcher->stream_count) {
                if (stream->refreshed || stream->state < STREAM_WAITING_TO_LIST)
                        continue;
                stream->refreshed = true;
                stream_go_on(stream);
        }
}

static int on_wait_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct stream *stream = userdata;

        stream->timer = sd_event_source_disable_unref(stream->timer);
        stream_go_on(stream);
        return 0;
}

static void wait_in(struct stream *stream, enum stream_state state, uint64_t delay_usec)
{
        stream->state = state;
        stream->timer = sd_event_source_disable_unref(stream->timer);
        stream_timer_arm(stream, delay_usec, on_wait_over);
}

static void react(struct stream *stream, enum reaction reaction, uint64_t delay_usec)
{
        switch (reaction) {
        case REACT_LIST_UNPAGED:
                stream->list_unpaged = true;
                list_start(stream);
                return;
        case REACT_LIST_NOW:
        case REACT_LIST_INSTEAD:
        case REACT_LIST_REDUCED:
                list_again(stream);
                return;
        case REACT_LIST_LATER:
        case REACT_REFRESH_LIST:
                wait_in(stream, STREAM_WAITING_TO_LIST, delay_usec);
                return;
        case REACT_PAGE_LATER:
        case REACT_REFRESH_PAGE:
                wait_in(stream, STREAM_WAITING_FOR_PAGE, delay_usec);
                return;
        case REACT_WATCH_NOW:
        case REACT_WATCH_REDUCED:
                watch_start(stream);
                return;
        case REACT_WATCH_LATER:
        case REACT_REFRESH_WATCH:
                wait_in(stream, STREAM_WAITING_TO_WATCH, delay_usec);
                return;
        case REACT_REDISCOVER:
                stream->resumed = false;
                wait_in(stream, STREAM_STOPPED, delay_usec);
                return;
        case REACT_FATAL:
        case REACTION_COUNT:
                break;
        }
        child_fatal(stream->watcher->child, EXIT_CODE_SOFTWARE,
                    "no reaction is defined for what happened (%d)", (int)reaction);
}

/* ---- failures */

static enum answer answer_in(struct stream *stream, enum phase phase, const struct kube_error *error)
{
        uint64_t now = clock_boottime_usec();
        enum answer answer = answer_of(error);

        if (answer == ANSWER_UNREACHABLE || answer == ANSWER_INTERRUPTED || answer == ANSWER_SILENT)
                stream->probe.due = stream->connection_lost = true;
        if (answer == ANSWER_SERVER_ERROR && recent_note(&stream->server_error, now))
                return ANSWER_SERVER_ERRORS;
        /* A streamed list that is cut again and again never gets past its beginning. */
        if (answer == ANSWER_INTERRUPTED && phase == PHASE_INITIAL &&
            recent_note(&stream->interruption, now))
                return ANSWER_UNINTELLIGIBLE;
        return answer;
}

/* If the refused credential has been replaced since, there is no reason to wait. */
static bool has_fresh_credential(struct stream *stream, uint64_t serial)
{
        if (serial == 0 || stream->refreshed ||
            kube_client_credential_serial(stream->watcher->client) <= serial)
                return false;
        stream->refreshed = true;
        return true;
}

/* A LIST at once finds what was missed. It is no failure unless it fails itself, or leads here again and
 * again. Negative: past the deadline. */
static int64_t list_now_delay(struct stream *stream, enum phase phase, const struct kube_error *error,
                              uint64_t serial)
{
        if (phase < PHASE_WATCH && stream->failures.relisted)
                return failures_note(stream->watcher, &stream->failures, error, serial);
        return (int64_t)failures_pace(stream->watcher, &stream->failures);
}

/* Decides how long to wait; a reaction "at once" becomes its later form when it must. */
static int64_t settle_reaction(struct stream *stream, enum phase phase, const struct kube_error *error,
                               uint64_t serial, enum reaction *reaction)
{
        struct watcher *watcher = stream->watcher;
        int64_t delay;

        switch (*reaction) {
        case REACT_LIST_UNPAGED:
                return 0;
        case REACT_LIST_INSTEAD:
                watcher->no_watch_list_until = clock_boottime_usec() + USEC_PER_HOUR;
                log_info(
                        "watch %s: a streamed list does not work (%s); an ordinary LIST is used for an hour",
                        watcher->config->watch, error->message ? error->message : "");
                return 0;
        case REACT_LIST_NOW:
                delay = list_now_delay(stream, phase, error, serial);
                if (delay > 0)
                        *reaction = REACT_LIST_LATER;
                return delay;
        case REACT_LIST_REDUCED:
        case REACT_WATCH_REDUCED:
                if (request_reduce(watcher, phase))
                        return 0;
                *reaction = REACT_LIST_LATER;
                failures_slow(watcher, &stream->failures);
                break;
        case REACT_REFRESH_LIST:
        case REACT_REFRESH_PAGE:
        case REACT_REFRESH_WATCH:
                if (has_fresh_credential(stream, serial))
                        return 0;
                break;
        default:
                break;
        }
        return failures_note(watcher, &stream->failures, error, serial);
}

void stream_failed(struct stream *stream, enum phase phase, const struct kube_error *error, uint64_t serial)
{
        enum reaction reaction = reaction_to(phase, answer_in(stream, phase, error));
        int64_t delay = settle_reaction(stream, phase, error, serial, &reaction);

        if (delay < 0)
                return;
        refused_namespaces_note(stream);
        if (stream->failures.refused && !stream->watcher->first_synced) {
                synced_tell(stream->watcher); /* the others may have waited for this one only */
                if (watcher_is_over(stream->watcher))
                        return;
        }
        log_debug("watch %s: %s (%s); next attempt in %lld ms", stream->watcher->config->watch,
                  error->message ? error->message : "", kube_failure_name(error->failure),
                  (long long)delay / 1000);
        react(stream, reaction, (uint64_t)delay);
}

/* ---- the end of a list */

void stream_replace(struct stream *stream)
{
        struct watcher *watcher = stream->watcher;

        FOREACH_ARRAY(each, watcher->stream, watcher->stream_count) {
                stream_give_up(each);
                each->probe.due = each->connection_lost = each->resumed = false;
                each->list_replaces = true;
        }
        if (restored_note(watcher) < 0 || positions_forget(watcher) < 0) {
                store_failed(watcher, -EIO);
                return;
        }
        if (announce_epoch(watcher) < 0)
                return;
        for (size_t i = 0; i < watcher->stream_count; i++)
                list_again(&watcher->stream[i]);
}

/* Runs that wait for this list look for its position in the store as soon as the recovery is reported. */
static int commit_before_recovery(struct stream *stream)
{
        struct watcher *watcher = stream->watcher;
        int r = stream->failures.count > 0 ? positions_save(watcher) : 0;

        if (r >= 0 && stream->failures.count > 0)
                r = store_commit(watcher->store);
        return r < 0 ? store_failed(watcher, r) : 0;
}

void stream_listed(struct stream *stream, const char *version)
{
        struct watcher *watcher = stream->watcher;

        watcher->count.lists++;
        watcher->count.relists += stream->synced;
        watcher->count.word_boottime = clock_boottime_usec();
        stream->complete_mark = stream->mark;
        stream->progress.listing = false;
        if (stream_set_resource_version(stream, version) < 0 || absence_listed(stream) < 0)
                return;
        stream->list_unpaged = stream->bad_line = stream->list_replaces = stream->resumed = false;
        probe_answered(stream);
        stream->synced = true;
        if (commit_before_recovery(stream) < 0)
                return;
        stream_succeeded(stream);
        synced_tell(watcher);
}

void stream_closed(struct stream *stream)
{
        react(stream, REACT_WATCH_NOW, 0);
}
