/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over the rows of a watch, which make some of them due. There may be as many as objects: a page is
 * taken each time that the loop has nothing else to do, and rows are only marked as due, so that the queue
 * takes them as it takes what is due by itself. What is in quarantine stays there.
 *
 *   RETRY_REFUSED   The server is well again, so what waits for it is due, at a pace: the server has just
 *                   come up. Each object once for a backoff of its own, so that a server that is well for
 *                   others only makes it run no more than twice as often.
 *   RETRY_FAILED    `reconciledctl retry --all-failed`: what has failed is due now, whatever it waits for.
 *   RETRY_GIVEN_UP  After a reload, or with another handler: what was given up gets one more attempt, at the
 *                   same pace. Its attempts stay counted, so a failure gives it up again.
 *   RETRY_ALL       `reconciledctl retry --all`: everything, at the same pace.
 *
 * The first two end with this life. The place of the last two is in the ledger (retry-kept.c).
 */
#include "controller/due/retry.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "controller/due/due.h"
#include "controller/due/push.h"
#include "controller/due/retry-kept.h"
#include "controller/effects.h"
#include "queue/look.h"

#define PACE_USEC (USEC_PER_SEC / RETRY_PACE)

void retry_forget(struct watch *watch)
{
        retry_walk_done(&watch->walk);
        retry_walk_done(&watch->kept_walk);
}

/* The walk that ends with this life goes first; the next life can go on with the other one. */
static struct retry_walk *walk_of(struct watch *watch)
{
        return watch->walk.scope != RETRY_NOTHING ? &watch->walk : &watch->kept_walk;
}

/* ---- which rows, and when: false if the walk leaves this row as it is */

static uint64_t pace_of(const struct retry_walk *walk)
{
        return walk->due * PACE_USEC;
}

static void take_at_pace(struct watch *watch, struct ledger_row *row, struct queue_item *item,
                         enum run_reason reason)
{
        struct retry_walk *walk = walk_of(watch);
        uint64_t delay = pace_of(walk);

        walk->due++;
        row->next_realtime = ledger_time(watch->controller) + delay;
        row->next_reason = item->reason = reason;
        item->not_before = delay > 0 ? watch->controller->now.boottime + delay : 0;
}

static bool comes_sooner(struct watch *watch, const struct ledger_row *row)
{
        return row->next_realtime <= ledger_time(watch->controller) + pace_of(walk_of(watch));
}

static bool recover_row(struct watch *watch, struct ledger_row *row, struct queue_item *item)
{
        bool waits = row->next_reason == RUN_UNAVAILABLE || row->next_reason == RUN_NOT_STARTED;

        if (!waits || comes_sooner(watch, row))
                return false;
        take_at_pace(watch, row, item, RUN_RECOVERED);
        item->nudge = true; /* a run that fails meanwhile has its own backoff */
        return true;
}

static bool request_row(struct watch *watch, struct ledger_row *row, struct queue_item *item)
{
        if (row->quarantined_until > 0)
                return false;
        row->permanent = false;
        row->next_realtime = ledger_time(watch->controller);
        row->next_reason = item->reason = RUN_REQUESTED;
        return true;
}

static bool try_row(struct watch *watch, struct ledger_row *row, struct queue_item *item)
{
        if (!row->permanent || row->next_realtime > 0 || row->quarantined_until > 0)
                return false;
        row->permanent = false;
        take_at_pace(watch, row, item, RUN_HANDLER_CHANGED);
        item->priority = QUEUE_LOW;
        watch->metrics.tried_again++;
        return true;
}

/* Objects that have not run yet, and those that are due sooner, run anyway. A resync may come later than its
 * row says (due.c). */
static bool take_any_row(struct watch *watch, struct ledger_row *row, struct queue_item *item)
{
        bool fails = row->attempts > 0 || row->permanent;
        bool is_served = row->handled_realtime > 0 && !row->deleting && !row->unselected;
        bool waits = row->next_realtime > 0 && row->next_reason != RUN_RESYNC;

        if (row->quarantined_until > 0 || (!fails && !is_served) || (waits && comes_sooner(watch, row)))
                return false;
        row->permanent = false;
        take_at_pace(watch, row, item, RUN_REQUESTED);
        item->priority = QUEUE_LOW;
        return true;
}

static int take_retry_row(const char *watch_name, const struct ledger_row *row, void *userdata)
{
        static bool (*const make_due[RETRY_SCOPE_COUNT])(struct watch *, struct ledger_row *,
                                                         struct queue_item *) = {
                [RETRY_REFUSED] = recover_row,
                [RETRY_FAILED] = request_row,
                [RETRY_GIVEN_UP] = try_row,
                [RETRY_ALL] = take_any_row,
        };
        struct watch *watch = userdata;
        struct controller *controller = watch->controller;
        struct retry_walk *walk = walk_of(watch);
        struct ledger_row changed_row = *row;
        struct queue_item item = {0};
        int r = 0;

        if (text_replace(&walk->key, row->key) < 0 || text_replace(&walk->uid, row->uid) < 0)
                return -ENOMEM;
        /* What settles is not waiting; what runs just now may have begun before the cause was mended. */
        if (row->settling[0] || !make_due[walk->scope](watch, &changed_row, &item))
                return 0;
        /* A short backoff waits in the queue: there it ends at once. What is in flight runs once more. */
        if (queue_has(controller->queue, watch_number(watch), row->key, row->uid, ledger_row_kind(row)))
                r = push_row(watch, row, item, 0);
        return r < 0 ? r : ledger_put(controller->ledger, watch_name, &changed_row);
}

/* ---- pages */

static struct watch *next_watch(struct controller *controller)
{
        FOREACH_WATCH(watch, controller)
                if (walk_of(watch)->scope != RETRY_NOTHING)
                        return watch;
        return NULL;
}

static int retry_page(struct watch *watch, const struct retry_walk *walk)
{
        struct ledger *ledger = watch->controller->ledger;
        _cleanup_free_ char *key = strdup(walk->key ? walk->key : "");
        _cleanup_free_ char *uid = strdup(walk->uid ? walk->uid : "");
        struct ledger_place last = {.watch = watch->config->name, .key = key, .uid = uid};

        if (!key || !uid)
                return -ENOMEM;
        if (walk->scope == RETRY_ALL)
                return ledger_visit(ledger, watch->config->name, key, uid, PAGE_RETRY, take_retry_row,
                                    watch);
        return ledger_list_failing(ledger, &last, PAGE_RETRY, take_retry_row, watch);
}

static int take_retry_page(struct watch *watch)
{
        struct retry_walk *walk = walk_of(watch);
        int r = retry_page(watch, walk);

        if (r >= 0 && r < PAGE_RETRY)
                retry_walk_done(walk);
        return r >= 0 && walk == &watch->kept_walk ? retry_kept_note(watch) : r;
}

bool retry_is_pending(struct controller *controller)
{
        return next_watch(controller) != NULL;
}

/* Visits as many pages as there is time for. The end of the turn writes the changes, and asks for the next pages. */
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
                r = take_retry_page(watch);
                watch = next_watch(controller);
        }
        if (r < 0) {
                ledger_failed(controller, r);
                return;
        }
        due_arm(controller);
        controller_settle_soon(controller);
}

/* Begins a walk at the first row of the watch. */
static void begin_walk(struct watch *watch, enum retry_scope scope)
{
        retry_walk_done(&watch->walk);
        watch->walk.scope = scope;
        controller_settle_soon(watch->controller);
}

static int retry_watch(struct watch *watch, uint64_t *count)
{
        struct ledger *ledger = watch->controller->ledger;
        struct ledger_failing failing = {0};
        int64_t quarantined = ledger_count_quarantined(ledger, watch->config->name);
        int r = quarantined < 0 ? (int)quarantined
                                : ledger_count_failing(ledger, watch->config->name, &failing);

        if (r < 0 || failing.failing <= (uint64_t)quarantined || watch->paused_realtime > 0)
                return r;
        failing.failing -= (uint64_t)quarantined;
        *count += failing.failing;
        begin_walk(watch, RETRY_FAILED);
        controller_log(watch->controller, LOG_NOTICE, NULL,
                       LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                       "%llu %s of watch %s %s again now, as requested by hand",
                       (unsigned long long)failing.failing, counted(failing.failing, "object", "objects"),
                       watch->config->name,
                       counted(failing.failing, "that has failed runs", "that have failed run"));
        return 0;
}

int retry_all_failed(struct controller *controller, struct watch *watch, uint64_t *ret_count)
{
        uint64_t count = 0;
        int r = 0;

        if (watch)
                r = retry_watch(watch, &count);
        FOREACH_WATCH(each, controller)
                if (!watch && r >= 0)
                        r = retry_watch(each, &count);
        if (r >= 0)
                *ret_count = count;
        return r;
}

int retry_all(struct watch *watch, uint64_t *ret_count)
{
        struct ledger *ledger = watch->controller->ledger;
        int64_t count = ledger_count(ledger, watch->config->name);
        int64_t quarantined = ledger_count_quarantined(ledger, watch->config->name);
        int r = count < 0 ? (int)count : quarantined < 0 ? (int)quarantined : retry_kept_all(watch);

        if (r < 0)
                return r;
        *ret_count = (uint64_t)(count - quarantined);
        controller_log(watch->controller, LOG_NOTICE, NULL,
                       LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                       "all objects of watch %s run again, at most %u a second, as requested by hand",
                       watch->config->name, RETRY_PACE);
        controller_settle_soon(watch->controller);
        return 0;
}

void recover(struct watch *watch)
{
        if (!watch->waits || watch->walk.scope != RETRY_NOTHING)
                return;
        watch->waits = false;
        begin_walk(watch, RETRY_REFUSED);
}
