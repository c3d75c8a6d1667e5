/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the queue, which change nothing. */
#include "queue/look.h"

#include "base/duration.h"
#include "queue/internal.h"

static enum queue_state entry_state(const struct entry *entry)
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

static size_t keys_ahead(const struct entry *entry)
{
        size_t count = 0;

        while ((entry = entry->previous) && count < QUEUE_AHEAD_MAX)
                count++;
        return count;
}

static size_t tenants_sharing(const struct queue *queue, const struct entry *entry)
{
        enum queue_line ring = entry->line == LINE_BEGUN ? LINE_NORMAL : entry->line;

        return queue->watch[entry->watch].ring[ring].count;
}

struct queue_view queue_look(const struct queue *queue, unsigned watch, const char *key)
{
        const struct entry *entry = entry_table_find(queue, watch, key);
        const struct work *work = entry ? (entry->current ? entry->current : entry_head(entry)) : NULL;

        if (!work)
                return (struct queue_view){.state = QUEUE_AT_REST};
        return (struct queue_view){
                .state = entry_state(entry),
                .goes_on = entry->place == PLACE_READY && entry->line == LINE_BEGUN,
                .uid = work->uid,
                .reason = work->reason,
                .since = entry->ready_since,
                .ahead = entry->place == PLACE_READY ? keys_ahead(entry) : 0,
                .sharing = entry->place == PLACE_READY ? tenants_sharing(queue, entry) : 0,
                .due = entry->delay.due,
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
        const struct heap_node *first = queue->alone == 0 ? heap_first(&queue->delayed) : NULL;
        uint64_t due = first ? first->due : USEC_INFINITY;

        uint64_t token = queue->alone == 0 ? rate_next_time(queue) : USEC_INFINITY;

        if (token < due)
                due = token;
        return queue->alone == 0 && queue->drain.until > 0 && queue->drain.until < due ? queue->drain.until
                                                                                       : due;
}

bool queue_is_alone(const struct queue *queue, uint64_t run)
{
        return queue->alone == run;
}

struct queue_counts queue_count(const struct queue *queue, unsigned watch)
{
        return queue->watch[watch].counts;
}

bool queue_has_namespace(const struct queue *queue, unsigned watch, const char *namespace, size_t length)
{
        const struct tenant *tenant = tenant_look(queue, watch, namespace, length);

        return tenant && tenant->queued > 0;
}

struct queue_counts queue_count_all(const struct queue *queue)
{
        struct queue_counts sum = {0};

        for (size_t i = 0; i < queue->watch_count; i++) {
                sum.queued += queue->watch[i].counts.queued;
                sum.running += queue->watch[i].counts.running;
                sum.delayed += queue->watch[i].counts.delayed;
                sum.settling += queue->watch[i].counts.settling;
                sum.answered += queue->watch[i].counts.answered;
        }
        return sum;
}

/* ---- who waits for whom */

struct shares {
        struct queue_share *share;
        size_t count, max;
};

static bool is_listed(const struct shares *shares, const struct tenant *tenant)
{
        for (size_t i = 0; i < shares->count; i++)
                if (shares->share[i].namespace == tenant->name)
                        return true;
        return false;
}

static uint64_t tenant_waits_since(const struct tenant *tenant)
{
        uint64_t since = 0;

        for (enum queue_line line = 0; line < LINE_COUNT; line++) {
                const struct entry *first = tenant->ready[line].first;

                if (first && (since == 0 || first->ready_since < since))
                        since = first->ready_since;
        }
        return since;
}

static void list_share(struct shares *shares, const struct tenant *tenant)
{
        size_t place = shares->count;

        if (is_listed(shares, tenant))
                return;
        while (place > 0 && shares->share[place - 1].queued < tenant->queued) {
                place--;
                if (place + 1 < shares->max)
                        shares->share[place + 1] = shares->share[place];
        }
        if (place == shares->max)
                return;
        shares->share[place] = (struct queue_share){
                .watch = tenant->watch,
                .namespace = tenant->name,
                .queued = tenant->queued,
                .running = tenant->running,
                .since = tenant_waits_since(tenant),
        };
        if (shares->count < shares->max)
                shares->count++;
}

size_t queue_shares(const struct queue *queue, struct queue_share *ret, size_t max)
{
        struct shares shares = {.share = ret, .max = max};

        for (size_t i = 0; i < queue->watch_count; i++)
                for (enum queue_line line = 0; line < LINE_COUNT; line++) {
                        const struct tenant *tenant = queue->watch[i].ring[line].first;

                        for (size_t looked = 0; tenant && looked < QUEUE_SHARES_LOOKED; looked++) {
                                list_share(&shares, tenant);
                                tenant = tenant->ring[line].next;
                        }
                }
        for (const struct entry *entry = queue->running.first; entry; entry = entry->next)
                list_share(&shares, entry->tenant);
        return shares.count;
}
