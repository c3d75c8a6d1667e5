/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the queue, which change nothing. */
#include "queue/look.h"

#include "base/duration.h"
#include "queue/internal.h"

static enum queue_state state_of(const struct entry *entry)
{
        switch (entry->place) {
        case PLACE_READY:
        case PLACE_HELD:
                return QUEUE_QUEUED;
        case PLACE_SUSPECT:
                return QUEUE_SUSPECT;
        case PLACE_RUNNING:
                return entry_head(entry) ? QUEUE_RUNNING_DIRTY : QUEUE_RUNNING;
        case PLACE_DELAYED:
                return QUEUE_DELAYED;
        case PLACE_NONE:
                break;
        }
        return QUEUE_AT_REST;
}

struct queue_view queue_look(const struct queue *queue, unsigned watch, const char *key)
{
        const struct entry *entry = entry_table_find(queue, watch, key);
        const struct work *work = entry ? (entry->current ? entry->current : entry_head(entry)) : NULL;

        if (!work)
                return (struct queue_view){.state = QUEUE_AT_REST};
        return (struct queue_view){
                .state = state_of(entry),
                .uid = work->uid,
                .reason = work->reason,
                .since = entry->ready_since,
                .due = entry->due,
                .behind = entry->behind > 0,
        };
}

static bool is_run_of(const struct work *work, const char *uid)
{
        return work_is_of(work, uid) && !work->bare;
}

bool queue_has(const struct queue *queue, unsigned watch, const char *key, const char *uid,
               enum change_kind kind)
{
        struct entry *entry = entry_table_find(queue, watch, key);

        if (!entry)
                return false;
        if (*entry_deletion(entry, uid) ||
            (work_is(entry->current, CHANGE_DELETED, uid) && !entry->current->withdrawn))
                return true;
        return kind != CHANGE_DELETED && (is_run_of(entry->current, uid) || work_is_of(entry->update, uid) ||
                                          is_run_of(entry->nudge, uid));
}

bool queue_has_other(const struct queue *queue, unsigned watch, const char *key, const char *uid)
{
        const struct entry *entry = entry_table_find(queue, watch, key);

        return entry && ((entry->update && !work_is_of(entry->update, uid)) ||
                         (entry->nudge && !work_is_of(entry->nudge, uid)));
}

enum run_reason queue_running(const struct queue *queue, unsigned watch, const char *key, const char *uid)
{
        const struct entry *entry = entry_table_find(queue, watch, key);

        return entry && work_is(entry->current, CHANGE_UPDATED, uid) ? entry->current->reason
                                                                     : RUN_REASON_NONE;
}

enum run_reason queue_nudge(const struct queue *queue, unsigned watch, const char *key, const char *uid)
{
        struct entry *entry = entry_table_find(queue, watch, key);

        return entry && work_is_of(entry->nudge, uid) ? entry->nudge->reason : RUN_REASON_NONE;
}

uint64_t queue_next_time(const struct queue *queue)
{
        const struct entry *entry = queue->alone == 0 ? entry_heap_first(&queue->heap) : NULL;

        return entry ? entry->due : USEC_INFINITY;
}

struct queue_counts queue_count(const struct queue *queue, unsigned watch)
{
        return queue->watch[watch].counts;
}

struct queue_counts queue_count_all(const struct queue *queue)
{
        struct queue_counts sum = {0};

        for (size_t i = 0; i < queue->watch_count; i++) {
                sum.queued += queue->watch[i].counts.queued;
                sum.running += queue->watch[i].counts.running;
                sum.delayed += queue->watch[i].counts.delayed;
                sum.settling += queue->watch[i].counts.settling;
        }
        return sum;
}
