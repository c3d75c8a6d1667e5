/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ledger says is due: long backoffs, requeueAfter, resync. They cost no memory while they wait. A
 * row that is handed to the queue keeps its time: should we die before its run, it is due at once.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "supervisor/supervisor.h"

#define PAGE 50

static const char *static_reason(const char *reason)
{
        static const char *const known[] = {"retry",     "requeueAfter", "resync",       "settling",
                                            "throttled", "requested",    "unavailable",  "recovered",
                                            "held",      child_reason,   handler_reason, not_started_reason};

        for (size_t i = 0; i < ELEMENTS(known); i++)
                if (strcmp(known[i], reason) == 0)
                        return known[i];
        return "retry";
}

#define AGAIN_USEC (5 * USEC_PER_SEC)

/* Rows are visited once for each time that is set: what cannot go to the queue now is given another one. */
static int come_again(struct watch *watch, const struct ledger_row *row)
{
        struct ledger_row later = *row;

        later.next_realtime = ledger_now(watch->child->supervisor) + AGAIN_USEC;
        return ledger_put(watch->child->supervisor->ledger, watch->config->name, &later);
}

/* Its time is not written anew with each success (outcome.c): what was handled since waits again. */
static bool is_resynced(const struct watch *watch, const struct ledger_row *row)
{
        return watch->config->resync_usec > DELAY_IN_QUEUE_USEC && strcmp(row->next_reason, "resync") == 0 &&
               row->handled_realtime + watch->config->resync_usec > ledger_now(watch->child->supervisor);
}

static int wait_again(struct watch *watch, const struct ledger_row *row)
{
        struct ledger_row later = *row;

        later.next_realtime = row->handled_realtime + watch->config->resync_usec;
        return ledger_put(watch->child->supervisor->ledger, watch->config->name, &later);
}

/* Behind what is new. */
static bool is_for_all(const char *reason)
{
        return strcmp(reason, "resync") == 0 || strcmp(reason, handler_reason) == 0;
}

static int take_row(const char *watch_name, const struct ledger_row *row, void *userdata)
{
        struct supervisor *supervisor = userdata;
        struct watch *watch = watch_find(supervisor, watch_name);
        struct ledger_row never = *row;
        struct queue_item item = {
                .key = row->key,
                .uid = row->uid,
                .suspect = ledger_row_is_suspect(row),
                .kind = ledger_row_kind(row),
                .priority = is_for_all(row->next_reason) ? QUEUE_LOW : QUEUE_NORMAL,
                .reason = static_reason(row->next_reason),
        };
        unsigned number;
        int r;

        if (!watch && config_watch_find(supervisor->config, watch_name))
                return 0; /* a reload starts it anew: when it is in sync, due_arm() begins anew as well */
        if (!watch) {
                never.next_realtime = 0; /* not configured any more: owed.c, should it come back */
                return ledger_put(supervisor->ledger, watch_name, &never);
        }
        /* pause_resume() begins anew. What has begun is ended nevertheless. */
        if (watch->paused_realtime > 0 && strcmp(row->next_reason, "settling") != 0)
                return 0;
        if (!watch->synced)
                return 0; /* it knows no objects yet: due_arm() begins anew when it does */
        if (is_resynced(watch, row))
                return wait_again(watch, row);
        number = (unsigned)(watch - supervisor->watch);
        /* What waits in the queue as well, or runs already, is not due a second time. */
        if (queue_has(supervisor->queue, number, row->key, row->uid, item.kind))
                return 0;
        /* Two objects of one name: which of them is gone, its end will tell. */
        if (item.kind != CHANGE_DELETED && queue_has_other(supervisor->queue, number, row->key, row->uid))
                return come_again(watch, row);
        r = queue_push(supervisor->queue, number, &item, clock_boottime_usec());
        watch->metrics.adds += r == QUEUE_ADDED;
        return r < 0 ? r : 0;
}

static int on_due(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;
        int r;

        turn_is(supervisor, "what is due");
        supervisor->due_armed = 0;
        if (supervisor->phase > PHASE_RUNNING || supervisor->uninstalling)
                return 0;
        do
                r = ledger_visit_due(supervisor->ledger, ledger_now(supervisor), PAGE, take_row, supervisor);
        while (r == PAGE && !turn_is_spent(supervisor));
        if (r < 0) {
                ledger_failed(supervisor, r);
                return 0;
        }
        due_arm(supervisor);
        turn_settle_soon(supervisor);
        return 0;
}

static size_t count_synced(const struct supervisor *supervisor)
{
        size_t count = 0;

        FOREACH_WATCH(watch, supervisor)
                count += watch->synced;
        return count;
}

void due_arm(struct supervisor *supervisor)
{
        size_t synced = count_synced(supervisor);
        uint64_t due = 0;
        int r;

        if (synced != supervisor->due_synced)
                ledger_due_again(supervisor->ledger);
        supervisor->due_synced = synced;
        r = ledger_next_due(supervisor->ledger, ledger_now(supervisor), &due);

        if (r < 0) {
                ledger_failed(supervisor, r);
                return;
        }
        if (due == supervisor->due_armed)
                return;
        supervisor->due_timer = sd_event_source_disable_unref(supervisor->due_timer);
        supervisor->due_armed = due;
        if (due == 0)
                return;
        /* What waits in the queue as well is due there first; a moment later here. */
        r = sd_event_add_time(supervisor->event, &supervisor->due_timer, CLOCK_BOOTTIME,
                              ledger_to_boottime(supervisor, due) + USEC_PER_SEC / 4, 0, on_due, supervisor);
        if (r >= 0) /* where there are many, all else has its turn between them */
                r = sd_event_source_set_priority(supervisor->due_timer, SETTLE_PRIORITY);
        if (r < 0)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL, "no timer for what is due: %s",
                                 strerror(-r));
}
