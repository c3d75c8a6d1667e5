/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/apply/announce.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "object/identity.h"
#include "store/dirty.h"
#include "store/record.h"
#include "store/writer.h"
#include "watcher/apply/finalizer-seen.h"
#include "watcher/apply/synced.h"
#include "watcher/store-failure.h"
#include "watcher/stream/resume.h"

#define UNHURRIED_USEC (5 * USEC_PER_MSEC) /* between two commits that announce nothing */

#define BATCH_MAX                                                                                           \
        200 /* entries of at most 1000 bytes (lib/object/identity.h, store/dirty.h): below a packet's cap */

/* A part of the credit that is kept free: changes need not wait until all stored objects were announced. */
#define SWEEP_LEAVES 400
#define SWEEP_LEAVES_NEW                                                                                    \
        400            /* of what is left to the sweep: for namespaces that it comes to for the first time */
#define SWEEP_AGEING 8 /* one of this many is from the sweep, if changes leave it no room */

struct batch {
        struct record_change change[BATCH_MAX];
        size_t count;
};

/* The strings share one allocation, which begins with the key. */
static int batch_change(const struct record_change *change, void *userdata)
{
        struct batch *batch = userdata;
        size_t key_size = strlen(change->key) + 1, uid_size = strlen(change->uid) + 1,
               version_size = strlen(change->resource_version) + 1;
        struct record_change copy = *change; /* the memory goes with the page */
        char *memory;

        if (!identity_fits(change->key, change->uid))
                return 0; /* no object has such a name */
        memory = malloc(key_size + uid_size + version_size);
        if (!memory)
                return -ENOMEM;
        copy.key = memcpy(memory, change->key, key_size);
        copy.uid = memcpy(memory + key_size, change->uid, uid_size);
        copy.resource_version = memcpy(memory + key_size + uid_size, change->resource_version, version_size);
        batch->change[batch->count++] = copy;
        return 0;
}

static void batch_free(struct batch *batch)
{
        for (size_t i = 0; i < batch->count; i++)
                free((void *)(uintptr_t)batch->change[i].key);
        free(batch);
}
DEFINE_CLEANUP(struct batch *, batch_free);

/* ---- the sweep announces stored objects by a walk through the store, as far as the credit goes and after what
 * has changed since; it writes nothing. It announces all stored objects after a restart without a LIST, since
 * the supervisor's ledger knows which are due, and after a first list that fills an empty store. */

struct swept {
        const struct watcher *watcher;
        struct batch *batch;
};

static int take_stored_object(const struct store_object *object, void *userdata)
{
        struct swept *swept = userdata;
        struct record_change change = {
                .kind = CHANGE_UPDATED,
                .key = object->key,
                .uid = object->uid,
                .resource_version = object->resource_version,
                .fingerprint = object->fingerprint,
                .first = true,
                .finalizer = finalizer_of_stored(swept->watcher, object),
        };

        return batch_change(&change, swept->batch);
}

static bool sweep_has_aged(const struct watcher *watcher)
{
        return watcher->announce.sweep.is_on && watcher->announce.sweep_passed >= SWEEP_AGEING;
}

static size_t sweep_room(const struct watcher *watcher, const struct batch *batch, uint64_t leaves)
{
        uint64_t room = watcher->announce.credit > leaves ? watcher->announce.credit - leaves : 0;

        if (room > BATCH_MAX)
                room = BATCH_MAX;
        if (room > batch->count)
                return (size_t)room - batch->count;
        return sweep_has_aged(watcher) ? 1 : 0;
}

static int sweep_dirty(struct watcher *watcher, struct batch *batch)
{
        size_t room = sweep_room(watcher, batch, SWEEP_LEAVES);
        size_t again_room = sweep_room(watcher, batch, SWEEP_LEAVES + SWEEP_LEAVES_NEW);
        struct swept objects = {watcher, batch};

        if (!watcher->announce.sweep.is_on)
                return 0;
        watcher->announce.sweep_passed = room > 0 ? 0 : watcher->announce.sweep_passed + batch->count;
        return sweep_go_on(&watcher->announce.sweep, watcher->store, watcher->first_synced, room, again_room,
                           take_stored_object, &objects);
}

static uint64_t loop_monotonic_usec(const struct watcher *watcher)
{
        uint64_t now = 0;

        (void)sd_event_now(watcher->child->event, CLOCK_MONOTONIC, &now);
        return now;
}

/* Commits the objects and how far they reach, in one transaction. */
static int commit_changes(struct watcher *watcher)
{
        int r = positions_save(watcher);

        if (r >= 0)
                r = store_commit(watcher->store);
        watcher->announce.committed_monotonic = loop_monotonic_usec(watcher);
        return r;
}

/* Sent at once: runs that began in another epoch may end at any moment. */
int announce_epoch(struct watcher *watcher)
{
        struct message_keys keys = {.watch = watcher->config->watch,
                                    .generation = store_generation(watcher->store),
                                    .epoch = watcher->epoch};
        int r = child_send(watcher->child, MESSAGE_KEYS, &keys);

        return r >= 0 ? 0
                      : child_fatal(watcher->child, EXIT_CODE_SOFTWARE,
                                    "cannot report the epoch to the supervisor: %s", strerror(-r));
}

/* Commits before it announces: the worker reads the object at once. */
static int announce_batch(struct watcher *watcher)
{
        _cleanup_(batch_free_pointer) struct batch *batch = calloc(1, sizeof(*batch));
        struct message_keys keys = {.watch = watcher->config->watch, .epoch = watcher->epoch};
        size_t max = watcher->announce.credit < BATCH_MAX ? (size_t)watcher->announce.credit : BATCH_MAX;
        size_t changes = max - (max > 0 && sweep_has_aged(watcher));
        size_t spare = watcher->announce.credit <= max ? CREDIT_SPARE : 0;
        int r = batch ? store_dirty_take(watcher->store, changes, spare, batch_change, batch) : -ENOMEM;

        if (r >= 0)
                r = sweep_dirty(watcher, batch);
        if (r >= 0)
                r = commit_changes(watcher);
        if (r < 0)
                return store_failed(watcher, r);
        if (batch->count == 0)
                return 0;
        keys.generation = store_generation(watcher->store);
        keys.change = batch->change;
        keys.change_count = batch->count;
        r = child_send(watcher->child, MESSAGE_KEYS, &keys);
        if (r < 0)
                return child_fatal(watcher->child, EXIT_CODE_SOFTWARE, "changes cannot be announced: %s",
                                   strerror(-r));
        watcher->announce.credit -= batch->count;
        return batch->count == max;
}

int announce_now(struct watcher *watcher)
{
        int r = 0;

        if (watcher->announce.credit == 0) {
                r = commit_changes(watcher);
                return r < 0 ? store_failed(watcher, r) : 0;
        }
        do
                r = announce_batch(watcher);
        while (r > 0 && watcher->announce.credit > 0);
        return r < 0 ? r : swept_tell(watcher);
}

int announce_due(struct watcher *watcher)
{
        return store_commit_due(watcher->store) ? announce_now(watcher) : 0;
}

static int on_echo_commit_time(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        (void)announce_now(userdata); /* a failure was reported and ends the loop */
        return 0;
}

static int commit_at(struct watcher *watcher, uint64_t monotonic)
{
        int r;

        if (!watcher->announce.commit_timer)
                return sd_event_add_time(watcher->child->event, &watcher->announce.commit_timer,
                                         CLOCK_MONOTONIC, monotonic, 1, on_echo_commit_time, watcher);
        r = sd_event_source_set_time(watcher->announce.commit_timer, monotonic);
        return r < 0 ? r : sd_event_source_set_enabled(watcher->announce.commit_timer, SD_EVENT_ONESHOT);
}

static bool has_to_announce(const struct watcher *watcher)
{
        if (watcher->announce.credit <= CREDIT_SPARE)
                return watcher->announce.credit > 0 &&
                       (sweep_has_aged(watcher) || store_dirty_turns(watcher->store));
        return watcher->announce.sweep.is_on || store_dirty_count(watcher->store) > 0;
}

/* Some changes cannot be announced yet, or start no run, as the echo of our own status write does not.
 * Where there are many of them, they are committed together: the commit is most of their cost. */
static int on_announce_settle(sd_event_source *source _unused_, void *userdata)
{
        struct watcher *watcher = userdata;
        uint64_t due = watcher->announce.committed_monotonic + UNHURRIED_USEC;

        if (has_to_announce(watcher) || !store_has_objects_to_commit(watcher->store) ||
            due <= loop_monotonic_usec(watcher) || commit_at(watcher, due) < 0)
                (void)announce_now(watcher); /* a failure was reported and ends the loop */
        return 0;
}

static bool will_settle(struct watcher *watcher)
{
        int enabled = SD_EVENT_OFF;

        if (watcher->announce.source)
                (void)sd_event_source_get_enabled(watcher->announce.source, &enabled);
        return enabled != SD_EVENT_OFF;
}

void announce_soon(struct watcher *watcher)
{
        int r = 0;

        if (will_settle(watcher))
                return;
        watcher->announce.asked_monotonic = loop_monotonic_usec(watcher);
        if (!watcher->announce.source) {
                r = sd_event_add_defer(watcher->child->event, &watcher->announce.source, on_announce_settle,
                                       watcher);
                if (r >= 0)
                        r = sd_event_source_set_priority(watcher->announce.source, SD_EVENT_PRIORITY_IDLE);
        }
        if (r >= 0)
                r = sd_event_source_set_enabled(watcher->announce.source, SD_EVENT_ONESHOT);
        if (r < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, "no memory for an event source");
}

int announce_in_time(struct watcher *watcher)
{
        if (will_settle(watcher) &&
            watcher->announce.asked_monotonic + UNHURRIED_USEC <= loop_monotonic_usec(watcher)) {
                (void)sd_event_source_set_enabled(watcher->announce.source, SD_EVENT_OFF);
                return announce_now(watcher);
        }
        announce_soon(watcher);
        return 0;
}

/* ---- tombstones */

static int tombstone_again(const struct store_object *object, void *userdata)
{
        struct watcher *watcher = userdata;
        struct record_change change = {
                .kind = CHANGE_DELETED,
                .key = object->key,
                .uid = object->uid,
                .resource_version = "",
        };

        return store_dirty_add(watcher->store, &change);
}

/* Announces again the deletions that a former life announced and nobody confirmed. This comes before any
 * stream starts: the end of an object is announced before the next object of that name. */
int announce_tombstones(struct watcher *watcher)
{
        int r = store_visit_tombstones(watcher->store, tombstone_again, watcher);

        return r < 0 ? store_failed(watcher, r) : 0;
}
