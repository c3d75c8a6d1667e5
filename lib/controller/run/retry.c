/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `reconciledctl retry --all-failed`: what has failed is due now, whatever it waits for. And once the server
 * is well again, what waits for that: at a pace, since the server has just come up. Each object once for a
 * backoff of its own, so that a server that is well for others only makes it run no more than twice as
 * often. There may be as
 * many as objects: a page is taken each time that the loop has nothing else to do, and rows are merely
 * marked as due, so that the queue takes them as it takes what is due by itself. What is in quarantine stays
 * there.
 *
 * Likewise when a handler has changed (handler-change.c): what failed under the former one, or all objects, at the
 * same pace; and what is in quarantine far apart, behind all others.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "controller/change/push.h"
#include "controller/clock.h"
#include "controller/effects.h"
#include "controller/run/due.h"
#include "controller/run/handler-change.h"
#include "controller/run/retry.h"
#include "queue/look.h"

#define PACE_USEC            (USEC_PER_SEC / HANDLER_RUNS_A_SECOND) /* between two that have waited */
/* Between two that may bring the operator down once more. */
#define QUARANTINE_PACE_USEC (10 * USEC_PER_SEC)

/* false: it does not wait for the server or its program, or is due sooner. */
static bool recover_row(struct watch *watch, struct ledger_row *row, struct queue_item *item)
{
        uint64_t delay = watch->retried * PACE_USEC, now = ledger_time(watch->controller);
        bool waits = row->next_reason == RUN_UNAVAILABLE || row->next_reason == RUN_NOT_STARTED;

        if (!waits || row->next_realtime <= now + delay)
                return false;
        watch->retried++;
        row->next_realtime = now + delay;
        row->next_reason = RUN_RECOVERED;
        item->reason = RUN_RECOVERED;
        item->nudge = true; /* a run that fails meanwhile has its own backoff */
        item->not_before = delay > 0 ? watch->controller->now.boottime + delay : 0;
        return true;
}

/* false: it does not need that. */
static bool request_row(struct watch *watch, struct ledger_row *row, struct queue_item *item)
{
        if (row->quarantined_until > 0)
                return false;
        row->permanent = false;
        row->next_realtime = ledger_time(watch->controller);
        row->next_reason = RUN_REQUESTED;
        item->reason = RUN_REQUESTED;
        return true;
}

static bool waits_for_server(const struct ledger_row *row)
{
        return row->next_reason == RUN_UNAVAILABLE || row->next_reason == RUN_HELD;
}

/* Whether the change of its handler concerns it, in this pass. */
static bool is_of_pass(const struct handler_change *change, const struct ledger_row *row)
{
        if ((row->quarantined_until > 0) != (change->pass == HANDLER_PASS_QUARANTINED))
                return false;
        if (row->attempts > 0 || row->permanent)
                return row->permanent || !waits_for_server(row);
        /* What has not run yet runs anyway. */
        return change->all && row->handled_realtime > 0 && !row->deleting && !row->unselected;
}

static bool change_row(struct watch *watch, struct ledger_row *row, struct queue_item *item)
{
        struct handler_change *change = &watch->handler;
        uint64_t delay = change->due * PACE_USEC + change->quarantined * QUARANTINE_PACE_USEC;
        uint64_t now = ledger_time(watch->controller);

        if (!is_of_pass(change, row))
                return false;
        if (change->pass == HANDLER_PASS_QUARANTINED)
                change->quarantined++;
        else
                change->due++;
        change->made_due++;
        /* What comes sooner by itself comes then. A resync may come later than its row says (due.c). */
        if (row->next_realtime == 0 || row->next_realtime > now + delay || row->next_reason == RUN_RESYNC) {
                row->next_realtime = now + delay;
                row->next_reason = RUN_HANDLER_CHANGED;
        }
        if (change->pass != HANDLER_PASS_QUARANTINED)
                handler_forgive(row);
        item->reason = RUN_HANDLER_CHANGED;
        item->priority = QUEUE_LOW;
        item->not_before = delay > 0 ? watch->controller->now.boottime + delay : 0;
        return true;
}

/* What is asked for by hand goes first; what a change of the handler makes due goes on behind it. */
static enum retry_scope scope_of(const struct watch *watch)
{
        if (watch->retrying != RETRY_NOTHING)
                return watch->retrying;
        return watch->handler.pass != HANDLER_PASS_NONE ? RETRY_CHANGED : RETRY_NOTHING;
}

static int take_row(const char *watch_name, const struct ledger_row *row, void *userdata)
{
        static bool (*const make_due[])(struct watch *, struct ledger_row *, struct queue_item *) = {
                [RETRY_REFUSED] = recover_row,
                [RETRY_FAILED] = request_row,
                [RETRY_CHANGED] = change_row,
        };
        struct watch *watch = userdata;
        struct controller *controller = watch->controller;
        enum retry_scope scope = scope_of(watch);
        struct ledger_row changed_row = *row;
        struct queue_item item = {0};
        bool is_changed = scope == RETRY_CHANGED;
        int r = 0;

        if (text_replace(is_changed ? &watch->handler.key : &watch->retry_key, row->key) < 0 ||
            text_replace(is_changed ? &watch->handler.uid : &watch->retry_uid, row->uid) < 0)
                return -ENOMEM;
        /* What settles is not waiting; what runs just now may have begun before the cause was mended. */
        if (row->settling[0] || !make_due[scope] || !make_due[scope](watch, &changed_row, &item))
                return 0;
        /* A short backoff waits in the queue: there it ends at once. What is under way runs once more. */
        if (queue_has(controller->queue, watch_number(watch), row->key, row->uid, ledger_row_kind(row)))
                r = push_row(watch, row, item, 0);
        return r < 0 ? r : ledger_put(controller->ledger, watch_name, &changed_row);
}

static struct watch *next_watch(struct controller *controller)
{
        FOREACH_WATCH(watch, controller)
                if (!watch->leaving && scope_of(watch) != RETRY_NOTHING)
                        return watch;
        return NULL;
}

static int visit_page(struct watch *watch, enum retry_scope scope)
{
        struct ledger *ledger = watch->controller->ledger;
        bool is_changed = scope == RETRY_CHANGED;
        _cleanup_free_ char *key = strdup(is_changed ? watch->handler.key : watch->retry_key);
        _cleanup_free_ char *uid = strdup(is_changed ? watch->handler.uid : watch->retry_uid);
        struct ledger_place behind = {.watch = watch->config->name, .key = key, .uid = uid};

        if (!key || !uid)
                return -ENOMEM;
        if (is_changed && watch->handler.pass == HANDLER_PASS_QUARANTINED)
                return ledger_list_quarantined(ledger, &behind, PAGE_RETRY, take_row, watch);
        if (is_changed && watch->handler.all)
                return ledger_visit(ledger, watch->config->name, key, uid, PAGE_RETRY, take_row, watch);
        return ledger_list_failing(ledger, &behind, PAGE_RETRY, take_row, watch);
}

/* How far a change of the handler has come goes into the ledger with the rows. */
static int take_page(struct watch *watch)
{
        enum retry_scope scope = scope_of(watch);
        int r = visit_page(watch, scope);
        bool is_last = r >= 0 && r < PAGE_RETRY;

        if (scope == RETRY_CHANGED && is_last)
                r = handler_begin_pass(watch, watch->handler.pass == HANDLER_PASS_OTHERS
                                                      ? HANDLER_PASS_QUARANTINED
                                                      : HANDLER_PASS_NONE);
        else if (is_last)
                watch->retrying = RETRY_NOTHING;
        return r >= 0 && scope == RETRY_CHANGED ? handler_note(watch) : r;
}

bool retry_is_pending(struct controller *controller)
{
        return next_watch(controller) != NULL;
}

/* As much as there is time for. The end of the turn writes what was changed, and asks for the next pages. */
void retry_take(struct controller *controller)
{
        struct watch *watch = controller->uninstall.active ? NULL : next_watch(controller);
        int r = watch ? ledger_try_hold(controller->ledger) : 0;

        if (!watch)
                return;
        if (r == -EBUSY) {
                controller_settle_later(controller);
                return;
        }
        while (r >= 0 && watch && controller_has_time(controller)) {
                r = take_page(watch);
                watch = next_watch(controller);
        }
        if (r < 0) {
                ledger_failed(controller, r);
                return;
        }
        due_arm(controller);
        controller_settle_soon(controller);
}

static int retry_watch(struct watch *watch, uint64_t *count)
{
        struct ledger_failing failing = {0};
        int r = ledger_count_failing(watch->controller->ledger, watch->config->name, &failing);

        if (r < 0 || failing.failing == 0 || watch->paused_realtime > 0)
                return r;
        if (text_replace(&watch->retry_key, "") < 0 || text_replace(&watch->retry_uid, "") < 0)
                return -ENOMEM;
        *count += failing.failing;
        watch->retrying = RETRY_FAILED;
        controller_log(watch->controller, LOG_NOTICE, NULL,
                       LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                       "%llu %s of watch %s %s again now, as it was asked for by hand",
                       (unsigned long long)failing.failing, counted(failing.failing, "object", "objects"),
                       watch->config->name,
                       counted(failing.failing, "that has failed runs", "that have failed run"));
        controller_settle_soon(watch->controller);
        return 0;
}

int retry_all(struct controller *controller, struct watch *watch, uint64_t *ret_count)
{
        uint64_t count = 0;
        int r = 0;

        if (watch)
                r = retry_watch(watch, &count);
        FOREACH_WATCH(each, controller)
                if (!watch && !each->leaving && r >= 0)
                        r = retry_watch(each, &count);
        if (r >= 0)
                *ret_count = count;
        return r;
}

void recover(struct watch *watch)
{
        if (!watch->waits || watch->retrying != RETRY_NOTHING)
                return;
        if (text_replace(&watch->retry_key, "") < 0 || text_replace(&watch->retry_uid, "") < 0)
                return; /* it waits for its backoff */
        watch->waits = false;
        watch->retried = 0;
        watch->retrying = RETRY_REFUSED;
        controller_settle_soon(watch->controller);
}
