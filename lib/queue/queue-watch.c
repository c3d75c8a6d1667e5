/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/queue-watch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "queue/internal.h"

int queue_add_watch(struct queue *queue, unsigned concurrency)
{
        struct queue_watch *watch = reallocarray(queue->watch, queue->watch_count + 1, sizeof(*watch));

        if (!watch)
                return -ENOMEM;
        queue->watch = watch;
        queue->watch[queue->watch_count] = (struct queue_watch){.concurrency = concurrency};
        return (int)queue->watch_count++;
}

/* A watch that had twins and has none any more only looks for them. */
void queue_set_kind(struct queue *queue, unsigned watch, uint64_t kind)
{
        assert(watch < queue->watch_count);
        queue->watch[watch].kind = kind;
        queue->watch[watch].has_twins = false;
        for (size_t i = 0; i < queue->watch_count && kind != 0; i++)
                if (i != watch && queue->watch[i].kind == kind)
                        queue->watch[i].has_twins = queue->watch[watch].has_twins = true;
}

void queue_pause(struct queue *queue, unsigned watch, bool paused)
{
        assert(watch < queue->watch_count);
        queue->watch[watch].paused = paused;
}

void queue_close(struct queue *queue, unsigned watch)
{
        assert(watch < queue->watch_count);
        queue->watch[watch].closed = true;
}

void queue_hurry_twins(struct queue *queue, unsigned watch, const char *key, const char *uid, uint64_t now)
{
        struct entry *twin;

        for (unsigned i = 0; (twin = next_twin(queue, watch, key, &i)); i++)
                if (twin->place == PLACE_DELAYED && work_is_leaving(entry_head(twin), uid)) {
                        entry_head(twin)->not_before = now;
                        entry_review(queue, twin, now);
                }
}

#define CLEAR_MAX 1000 /* entries at once: they are four allocations each */

int queue_clear(struct queue *queue, unsigned watch, unsigned concurrency)
{
        struct queue_watch *cleared = &queue->watch[watch];

        assert(watch < queue->watch_count);
        if (cleared->counts.running > 0)
                return -EBUSY;
        for (size_t i = 0; i < CLEAR_MAX && cleared->newest; i++) {
                struct entry *entry = cleared->newest;

                entry_unplace(queue, entry);
                entry_go(queue, entry);
        }
        if (cleared->newest)
                return -EAGAIN;
        assert(cleared->counts.queued == 0 && cleared->counts.delayed == 0 && cleared->counts.settling == 0);
        *cleared = (struct queue_watch){.concurrency = concurrency, .bucket = cleared->bucket};
        return 0;
}
