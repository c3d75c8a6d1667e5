/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a suspect runs: alone, so that its death harms no other run and is blamed on it. It waits while anything else is to be
 * done, but not forever: after QUEUE_PATIENCE_USEC nothing else begins, and it runs when the last run has ended. A run may take
 * long, above all its write to a server that does not answer. So others are held back in phases only, and begin as usual in the
 * phases between, which are as long. Each phase is twice as long as the last one of its kind: one of them outlasts every run.
 * Where many suspects have lost their patience, each second run is another's.
 */
#include <assert.h>

#include "queue/internal.h"

/* A run that has begun is finished first, and a user waits for a run that was asked for by hand. */
static bool is_urgent(const struct work *work)
{
        return work->urgent || work->reason == RUN_SETTLING;
}

static bool may_run(const struct queue *queue, const struct entry *entry)
{
        const struct queue_watch *watch = &queue->watch[entry->watch];

        return !watch->closed && (!watch->paused || is_urgent(entry_head(entry)));
}

/* If runs wait for tokens, suspects and others take turns with these as well. */
static bool has_token(const struct queue *queue, const struct entry *entry)
{
        const struct queue_watch *watch = &queue->watch[entry->watch];

        return watch->bucket.interval_nsec == 0 || !work_needs_token(entry_head(entry)) ||
               (!watch->bucket.empty && !(watch->bucket.suspect_last && tenant_may_pick(watch)));
}

static bool waits_for_token(const struct queue *queue)
{
        for (const struct entry *entry = queue->suspects.first; entry && queue->rated > 0;
             entry = entry->next)
                if (!has_token(queue, entry))
                        return true;
        return false;
}

struct entry *suspect_next(const struct queue *queue)
{
        struct entry *entry = queue->suspects.first;

        while (entry && (!may_run(queue, entry) || !has_token(queue, entry)))
                entry = entry->next;
        return entry;
}

/* Whether this is a phase in which nothing begins. */
static bool drains(struct queue *queue, uint64_t now)
{
        if (queue->drain.usec == 0) {
                queue->drain.since = now;
                queue->drain.usec = QUEUE_PATIENCE_USEC;
        }
        assert(now >= queue->drain.since);
        while (now - queue->drain.since >= 2 * queue->drain.usec) {
                queue->drain.since += 2 * queue->drain.usec;
                queue->drain.usec *= 2;
        }
        return now - queue->drain.since < queue->drain.usec;
}

/* suspect: NULL where none may run. While one waits for its token the phases go on: else none would outlast a long run. */
bool suspect_goes_first(struct queue *queue, const struct entry *suspect, uint64_t now)
{
        bool waits = !suspect && waits_for_token(queue);
        bool is_patient =
                queue->was_alone || (suspect ? now < suspect->ready_since + QUEUE_PATIENCE_USEC : !waits);

        queue->drain.until = 0;
        if (is_patient || !queue->running.first) {
                queue->drain.usec = 0;
                return suspect && !is_patient;
        }
        if (waits || !drains(queue, now))
                return false;
        queue->drain.until = queue->drain.since + queue->drain.usec;
        return true;
}
