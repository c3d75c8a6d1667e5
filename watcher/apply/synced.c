/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/apply/synced.h"

#include <errno.h>
#include <string.h>

#include "base/exit-code.h"
#include "store/dirty.h"
#include "store/writer.h"
#include "watcher/apply/absence.h"
#include "watcher/apply/announce-owner.h"
#include "watcher/apply/announce.h"
#include "watcher/apply/finalizer-search.h"
#include "watcher/apply/ledger-check.h"
#include "watcher/apply/scope.h"
#include "watcher/apply/verify.h"
#include "watcher/store-failure.h"
#include "watcher/stream/missing-namespaces.h"
#include "watcher/stream/resume.h"
#include "watcher/stream/stream.h"

/* Why the objects of a namespace were never listed. */
static const char *first_refusal(const struct watcher *watcher)
{
        for (size_t i = 0; i < watcher->stream_count; i++)
                if (!watcher->stream[i].synced && watcher->stream[i].failures.last.message)
                        return watcher->stream[i].failures.last.message;
        return "a namespace was not listed";
}

/* SWEPT is sent once, and again when a namespace that was refused is listed. */
int swept_tell(struct watcher *watcher)
{
        struct message_swept swept = {.watch = watcher->config->watch,
                                      .again = watcher->announce.swept_again};
        char unlisted[400];

        if (watcher->announce.swept || !watcher->first_synced || watcher->announce.sweep.is_on ||
            store_dirty_count(watcher->store) > 0 || !finalizer_search_is_through(watcher))
                return 0;
        swept.unseen = watcher->search.unseen;
        if (!swept.unseen[0] && !streams_are_synced(watcher)) {
                snprintf(unlisted, sizeof(unlisted), "%.300s", first_refusal(watcher));
                swept.unseen = unlisted;
        }
        watcher->announce.swept_in_part = swept.unseen[0];
        watcher->announce.swept = true;
        if (child_send(watcher->child, MESSAGE_SWEPT, &swept) >= 0)
                return 0;
        return child_fatal(watcher->child, EXIT_CODE_SOFTWARE,
                           "cannot report to the supervisor that all objects were announced");
}

int swept_again(struct watcher *watcher)
{
        watcher->announce.swept = false;
        watcher->announce.swept_again = true;
        finalizer_search_begin(watcher, CHANGE_UPDATED);
        if (sweep_begin(&watcher->announce.sweep) < 0)
                return -ENOMEM;
        announce_soon(watcher);
        return 0;
}

/* If no LIST has shown the stored objects, a sweep announces them. */
static int begin_life(struct watcher *watcher)
{
        /* Owned objects are no reason to run by themselves. */
        for (size_t i = 0; i < watcher->stream_count && !watcher->announce.sweep.is_on && !is_owned(watcher);
             i++)
                if (watcher->stream[i].resumed && sweep_begin(&watcher->announce.sweep) < 0)
                        return store_failed(watcher, -ENOMEM);
        if (watcher->config->searches)
                finalizer_search_begin(watcher, CHANGE_UNSELECTED);
        return absence_out_of_scope(watcher);
}

void synced_tell(struct watcher *watcher)
{
        struct message_synced synced = {
                .watch = watcher->config->watch,
                .resource_version = "",
                .other_cluster = watcher->deletions_suspended,
                .cluster = watcher->cluster,
                .scope = watcher->scope,
        };
        int r;

        FOREACH_ARRAY(stream, watcher->stream, watcher->stream_count) {
                if (!stream->synced && !stream_is_refused(stream))
                        return;
                if (stream->synced)
                        synced.resource_version = stream->resource_version;
        }
        if (!watcher->first_synced && begin_life(watcher) < 0)
                return;
        if (!watcher->first_synced && (r = positions_note_unlisted(watcher)) < 0) {
                store_failed(watcher, r);
                return;
        }
        watcher->first_synced = true;
        watcher->announce.swept = watcher->announce.swept && !watcher->announce.swept_in_part;
        r = meta_save(watcher, streams_are_synced(watcher) && verification_idle(watcher));
        if (r < 0) {
                store_failed(watcher, r);
                return;
        }
        synced.objects = store_count(watcher->store);
        synced.generation = store_generation(watcher->store);
        if (announce_now(watcher) < 0)
                return;
        if (child_send(watcher->child, MESSAGE_SYNCED, &synced) < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE,
                            "cannot report to the supervisor that the watch is in sync");
        else
                verification_continue(watcher); /* those of the last life as well */
        ledger_check_finish_maybe(watcher);
        missing_namespaces_look(watcher);
}
