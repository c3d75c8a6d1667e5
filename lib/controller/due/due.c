/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ledger says is due: long backoffs, requeueAfter, resync. They cost no memory while they wait. A
 * row that is handed to the queue keeps its time: should we die before its run, it is due at once.
 */

#include "controller/due/due.h"
#include "base/duration.h"
#include "controller/due/next-attempt.h"
#include "controller/due/push.h"
#include "controller/due/schedule.h"
#include "controller/effects.h"
#include "queue/look.h"

static enum run_reason due_reason(const struct ledger_row *row)
{
        return row->next_reason == RUN_REASON_NONE ? RUN_RETRY : row->next_reason;
}

#define AGAIN_USEC (5 * USEC_PER_SEC)

/* Rows are visited once for each time that is set: what cannot go to the queue now is given another one. */
static int come_again(struct watch *watch, const struct ledger_row *row)
{
        struct ledger_row later = *row;

        later.next_realtime = ledger_time(watch->controller) + AGAIN_USEC;
        return ledger_put(watch->controller->ledger, watch->config->name, &later);
}

/* Its time is not written again with each success (outcome.c): what was handled since waits again. */
static bool is_resynced(const struct watch *watch, const struct ledger_row *row)
{
        return watch->config->resync_usec > DELAY_IN_QUEUE_USEC && due_reason(row) == RUN_RESYNC &&
               row->handled_realtime + watch->config->resync_usec > ledger_time(watch->controller);
}

static int wait_again(struct watch *watch, const struct ledger_row *row)
{
        struct ledger_row later = *row;

        later.next_realtime = row->handled_realtime + watch->config->resync_usec;
        return ledger_put(watch->controller->ledger, watch->config->name, &later);
}

/* There may be as many as objects: they come after what is new. */
static bool is_for_many(enum run_reason reason)
{
        return reason == RUN_RESYNC || reason == RUN_HANDLER_CHANGED || reason == RUN_REQUESTED;
}

static int take_scheduled(struct watch *watch, const struct ledger_row *row, struct queue_item item)
{
        struct ledger_row taken = *row;

        if (schedule_take(watch, &taken))
                return push_row(watch, row, item, 0);
        return ledger_put(watch->controller->ledger, watch->config->name, &taken);
}

static int take_due_row(const char *watch_name, const struct ledger_row *row, void *userdata)
{
        struct controller *controller = userdata;
        struct watch *watch = watch_find(controller, watch_name);
        struct ledger_row never = *row;
        const struct queue_item item = {
                .priority = is_for_many(due_reason(row)) ? QUEUE_LOW : QUEUE_NORMAL,
                .reason = due_reason(row),
        };
        enum change_kind kind = ledger_row_kind(row);
        unsigned number;

        if (!watch) {
                never.next_realtime =
                        0; /* no longer configured; owed.c makes it due again if it comes back */
                return ledger_put(controller->ledger, watch_name, &never);
        }
        /* pause_resume() begins again. What has begun is ended nevertheless. */
        if (watch->paused_realtime > 0 && due_reason(row) != RUN_SETTLING)
                return 0;
        if (!watch->synced)
                return 0; /* it knows no objects yet: due_arm() begins again when it does */
        if (ledger_row_is_hearsay(row) && !watch->config->own)
                return 0; /* its watcher has not shown it so far: the rest of its backoff begins with that */
        if (is_resynced(watch, row))
                return wait_again(watch, row);
        number = watch_number(watch);
        /* What waits in the queue as well, or runs already, is not due a second time. */
        if (queue_has(controller->queue, number, row->key, row->uid, kind))
                return 0;
        /* Two objects of one name: which of them is gone, its end will tell. */
        if (kind != CHANGE_DELETED && queue_has_other(controller->queue, number, row->key, row->uid))
                return come_again(watch, row);
        if (due_reason(row) == RUN_SCHEDULED && watch->config->own == OWN_SCHEDULE)
                return take_scheduled(watch, row, item);
        return push_row(watch, row, item, 0);
}

void due_take(struct controller *controller)
{
        int r;

        controller->due.armed = 0;
        if (controller->is_ending || controller->uninstall.active)
                return;
        do
                r = ledger_visit_due(controller->ledger, ledger_time(controller), PAGE_DUE, take_due_row,
                                     controller);
        while (r == PAGE_DUE && controller_has_time(controller));
        if (r < 0) {
                ledger_failed(controller, r);
                return;
        }
        due_arm(controller);
        controller_settle_soon(controller);
}

static size_t count_synced(const struct controller *controller)
{
        size_t count = 0;

        FOREACH_WATCH(watch, controller)
                count += watch->synced;
        return count;
}

/* What waits in the queue as well is due there first; a moment later here. */
#define BEHIND_QUEUE_USEC (USEC_PER_SEC / 4)

void due_arm(struct controller *controller)
{
        size_t synced = count_synced(controller);
        uint64_t due = 0;
        int r;

        if (synced != controller->due.synced)
                ledger_due_again(controller->ledger);
        controller->due.synced = synced;
        r = ledger_next_due(controller->ledger, ledger_time(controller), &due);
        if (r < 0) {
                ledger_failed(controller, r);
                return;
        }
        if (due == controller->due.armed)
                return;
        controller->due.armed = due;
        controller->effects->wake(controller->userdata, WAKE_DUE,
                                  due == 0 ? UINT64_MAX
                                           : ledger_time_to_boottime(controller, due) + BEHIND_QUEUE_USEC);
}
