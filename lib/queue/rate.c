/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often runs of a watch may begin: a bucket of tokens, of which each run takes one. The bucket is one number, the time at
 * which it is full again: a token takes an interval to come back, so taking one puts that time off by an interval. Nothing has
 * to be done while runs wait, however many these are. A run that ends without its handler having been asked gives its token
 * back. One that goes on with what had begun needs none; if its handler is asked all the same, the bucket owes it.
 */
#include "queue/rate.h"

#include <assert.h>

#include "base/duration.h"
#include "queue/internal.h"

#define NSEC_PER_USEC UINT64_C(1000)

/* When there is a token, in usec. */
static uint64_t token_time(const struct bucket *bucket)
{
        uint64_t rest = (bucket->burst - 1) * bucket->interval_nsec;

        return bucket->full_nsec > rest ? (bucket->full_nsec - rest + NSEC_PER_USEC - 1) / NSEC_PER_USEC : 0;
}

static void bucket_take(struct bucket *bucket, uint64_t now)
{
        if (bucket->full_nsec < now * NSEC_PER_USEC)
                bucket->full_nsec = now * NSEC_PER_USEC;
        bucket->full_nsec += bucket->interval_nsec;
}

static void bucket_give_back(struct bucket *bucket)
{
        assert(bucket->full_nsec >= bucket->interval_nsec);
        bucket->full_nsec -= bucket->interval_nsec;
}

void queue_set_rate(struct queue *queue, unsigned watch, uint64_t interval_nsec, unsigned burst)
{
        struct bucket *bucket = &queue->watch[watch].bucket;

        assert(watch < queue->watch_count && (interval_nsec == 0 || burst > 0));
        if (interval_nsec > 0 && bucket->interval_nsec == 0)
                queue->rated++;
        else if (interval_nsec == 0 && bucket->interval_nsec > 0)
                queue->rated--;
        bucket->interval_nsec = interval_nsec;
        bucket->burst = burst;
        bucket->empty = false;
}

void rate_look(struct queue *queue, uint64_t now)
{
        for (size_t i = 0; i < queue->watch_count && queue->rated > 0; i++) {
                struct bucket *bucket = &queue->watch[i].bucket;

                bucket->empty = bucket->interval_nsec > 0 && token_time(bucket) > now;
        }
}

bool work_needs_token(const struct work *work)
{
        return work->reason != RUN_SETTLING && !run_is_without_handler(work->reason);
}

void rate_take(struct bucket *bucket, struct entry *entry, uint64_t ready_since, uint64_t now)
{
        uint64_t since = token_time(bucket);

        entry->has_token = bucket->interval_nsec > 0 && work_needs_token(entry->current);
        if (!bucket->empty)
                bucket->suspect_last = entry->current->suspect;
        if (!entry->has_token)
                return;
        assert(since <= now);
        if (since > ready_since) {
                bucket->waited.runs++;
                bucket->waited.usec += since - ready_since;
        }
        bucket_take(bucket, now);
}

void rate_ran(struct bucket *bucket, struct entry *entry, bool handler_ran, uint64_t now)
{
        if (bucket->interval_nsec == 0 || entry->has_token == handler_ran)
                return;
        if (handler_ran)
                bucket_take(bucket, now);
        else
                bucket_give_back(bucket);
        entry->has_token = handler_ran;
}

/* Whether a token would let something begin. */
static bool waits(const struct queue *queue, const struct queue_watch *watch)
{
        return watch->ring[LINE_BY_HAND].first || queue->suspects.first ||
               (!watch->paused && (watch->ring[LINE_NORMAL].first || watch->ring[LINE_LOW].first));
}

uint64_t rate_next_time(const struct queue *queue)
{
        uint64_t next = USEC_INFINITY;

        for (size_t i = 0; i < queue->watch_count && queue->rated > 0; i++) {
                const struct queue_watch *watch = &queue->watch[i];
                uint64_t due = token_time(&watch->bucket);

                if (watch->bucket.empty && !watch->closed && waits(queue, watch) && due < next)
                        next = due;
        }
        return next;
}

struct queue_rate queue_rate(const struct queue *queue, unsigned watch)
{
        const struct bucket *bucket = &queue->watch[watch].bucket;

        assert(watch < queue->watch_count);
        return (struct queue_rate){
                .next = bucket->interval_nsec > 0 ? token_time(bucket) : 0,
                .waited_runs = bucket->waited.runs,
                .waited_usec = bucket->waited.usec,
        };
}
