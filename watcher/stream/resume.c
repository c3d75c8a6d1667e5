/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/stream/resume.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "watcher/store-failure.h"

bool resume_is_allowed(const struct watcher *watcher)
{
        const char *known = watcher->config->known_scope;

        return !watcher->deletions_suspended && strcmp(watcher->meta.cluster, watcher->cluster) == 0 &&
               strcmp(watcher->meta.scope, watcher->scope) == 0 &&
               (known[0] == '\0' || strcmp(known, watcher->scope) == 0);
}

bool resume_position_fits(const struct watcher *watcher, const struct store_position *position)
{
        return position->resource_version[0] != '\0' && position->mark > 0 &&
               position->mark <= watcher->meta.mark && strcmp(position->basis, watcher->basis) == 0;
}

static int resume_stream(struct stream *stream)
{
        struct watcher *watcher = stream->watcher;
        struct store_position position;
        int r = store_position_get(watcher->store, stream->namespace_name, &position);

        if (r < 0)
                return r;
        if (!resume_position_fits(watcher, &position))
                r = -ENOENT;
        else
                r = stream_set_resource_version(stream, position.resource_version);
        stream->mark = stream->complete_mark = position.mark;
        store_position_done(&position);
        return r;
}

/* The time makes it another number than that of any other store. */
static int epoch_begin(struct watcher *watcher)
{
        struct store_epoch epoch = {watcher->restored.boottime, clock_realtime_usec()};

        watcher->epoch = epoch.epoch;
        return store_epoch_set(watcher->store, &epoch);
}

/* All streams resume, or none: the store lacks the objects of a namespace that is new to the watch. */
int resume_streams(struct watcher *watcher)
{
        int begun, r = resume_is_allowed(watcher) ? 0 : -ENOENT;

        for (size_t i = 0; i < watcher->stream_count && r >= 0; i++)
                r = resume_stream(&watcher->stream[i]);
        if (r < 0 && r != -ENOENT)
                return store_failed(watcher, r);
        begun = r < 0 ? epoch_begin(watcher) : 0;
        if (begun < 0)
                return store_failed(watcher, begun);
        FOREACH_ARRAY(stream, watcher->stream, watcher->stream_count) {
                stream->resumed = stream->probe.due = r >= 0;
                if (r < 0) {
                        stream->mark = stream->complete_mark = 0;
                        if (stream_set_resource_version(stream, "") < 0)
                                return store_failed(watcher, -ENOMEM);
                }
                stream->position_changed = false;
        }
        return 0;
}

static int save_position(struct stream *stream, const char *version)
{
        struct watcher *watcher = stream->watcher;
        struct store_position position = {
                .resource_version = (char *)(uintptr_t)version,
                .basis = watcher->basis,
                .mark = stream->complete_mark,
        };
        int r = store_position_set(watcher->store, stream->namespace_name, &position);

        if (r >= 0)
                stream->position_changed = false;
        return r;
}

int positions_save(struct watcher *watcher)
{
        int r = 0;

        for (size_t i = 0; i < watcher->stream_count && r >= 0; i++) {
                struct stream *stream = &watcher->stream[i];

                if (stream->position_changed && stream->complete_mark > 0)
                        r = save_position(stream, stream->resource_version);
        }
        return r;
}

int positions_forget(struct watcher *watcher)
{
        int r = 0;

        for (size_t i = 0; i < watcher->stream_count && r >= 0; i++)
                r = save_position(&watcher->stream[i], "");
        return r;
}

int positions_note_unlisted(struct watcher *watcher)
{
        int r = 0;

        for (size_t i = 0; i < watcher->stream_count && r >= 0; i++) {
                struct store_position position;

                if (watcher->stream[i].synced)
                        continue;
                r = store_position_get(watcher->store, watcher->stream[i].namespace_name, &position);
                if (r == -ENOENT)
                        r = save_position(&watcher->stream[i], "");
                else if (r >= 0)
                        store_position_done(&position);
        }
        return r;
}

/* Time for the list, and for the questions about what it lacks. */
#define WENT_BACK_USEC (10 * USEC_PER_SEC)

bool restored_lately(const struct watcher *watcher)
{
        return watcher->restored.boottime > 0 &&
               clock_boottime_usec() - watcher->restored.boottime < WENT_BACK_USEC;
}

/* The note is in the same transaction as all that follows from the restore, or in an earlier one. */
int restored_note(struct watcher *watcher)
{
        watcher->restored.boottime = clock_boottime_usec();
        watcher->restored.count++;
        return epoch_begin(watcher);
}

/* By CLOCK_BOOTTIME, which nobody sets. A time that is still to come is of another boot. */
int restored_load(struct watcher *watcher)
{
        uint64_t now = clock_boottime_usec();
        struct store_epoch epoch;
        int r = store_epoch_get(watcher->store, &epoch);

        watcher->epoch = epoch.epoch;
        if (r < 0 || epoch.restored_boottime == 0 ||
            (epoch.restored_boottime <= now && now - epoch.restored_boottime >= WENT_BACK_USEC))
                return r;
        watcher->restored.boottime = now;
        if (epoch.restored_boottime <= now)
                return 0;
        epoch.restored_boottime = now;
        return store_epoch_set(watcher->store, &epoch);
}
