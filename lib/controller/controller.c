/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/controller.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/duration.h"
#include "controller/change/handled.h"
#include "controller/change/owed.h"
#include "controller/change/related-changes.h"
#include "controller/controller-watch.h"
#include "controller/due/due.h"
#include "controller/due/retry.h"
#include "controller/due/schedule.h"
#include "controller/due/watch-refusal.h"
#include "controller/effects.h"
#include "controller/order/uninstall.h"
#include "controller/run/assign.h"
#include "controller/run/outcome.h"
#include "queue/look.h"
#include "queue/queue-watch.h"

int controller_init(struct controller *controller, const struct controller_effects *effects, void *userdata,
                    size_t workers, size_t watch_room)
{
        *controller = (struct controller){
                .effects = effects,
                .userdata = userdata,
                .watch = calloc(watch_room, sizeof(struct watch)),
                .watch_room = watch_room,
                .worker = calloc(workers, sizeof(struct worker)),
                .worker_count = workers,
        };
        if (!controller->watch || !controller->worker)
                return -ENOMEM;
        for (size_t i = 0; i < workers; i++)
                controller->worker[i].controller = controller;
        for (size_t i = 0; i < watch_room; i++)
                controller->watch[i].controller = controller;
        return 0;
}

/* Above all parts of a watch: each part releases what it owns. */
static void watch_empty(struct watch *watch)
{
        handled_forget(watch);
        free(watch->resource_version);
        refusal_free(watch);
        free(watch->owed_key);
        free(watch->owed_uid);
        retry_forget(watch);
        free(watch->pause_reason);
        marks_forget(&watch->tries);
        marks_forget(&watch->finalized);
        uninstall_watch_done(watch);
        related_forget(watch);
        *watch = (struct watch){.controller = watch->controller, .userdata = watch->userdata};
}

void controller_done(struct controller *controller)
{
        for (size_t i = 0; i < controller->worker_count; i++)
                for (size_t j = 0; j < controller->worker[i].given_count; j++)
                        free(controller->worker[i].given[j].news);
        if (controller->watch)
                FOREACH_WATCH(watch, controller)
                        watch_empty(watch);
        free(controller->startup_error);
        controller->startup_error = NULL;
        free(controller->watch);
        free(controller->worker);
        controller->watch = NULL;
        controller->worker = NULL;
        controller->watch_count = controller->worker_count = 0;
}

int watch_renew(struct watch *watch)
{
        struct controller *controller = watch->controller;
        const struct watch kept = *watch;
        int r = queue_clear(controller->queue, watch_number(watch), watch_limit(controller, watch->config));

        if (r < 0)
                return r;
        watch_empty(watch);
        watch_fill(watch, kept.config);
        watch->health = kept.health;
        watch->metrics = kept.metrics;
        watch->successes = kept.successes;
        watch->failures_total = kept.failures_total;
        watch->not_kept = kept.not_kept;
        return 0;
}

/*
 * The end of a turn. Order is what counts here: runs are picked and their rows written, the ledger is
 * committed, and only then RUN and HANDLED leave.
 */
#define COMMIT_PATIENCE_USEC USEC_PER_MINUTE
#define COMMIT_TOLD_USEC     USEC_PER_SEC

/* ---- what leaves after the commit */

#define PORTION    (CREDIT_LIMIT / 4)
#define HURRY_USEC (5 * USEC_PER_MSEC)

/* Credit bounds how much may still be announced; with what is queued it never exceeds the limit. Delayed
 * keys hold none: a crowd that fails must not starve new ones. Given in portions; a watcher that has none left, but the
 * spare one, gets one for each run that has ended, also where the queue is full of a crowd that comes back again and again.
 * So what waits there, where namespaces take turns, too, moves on with every run. */
static uint64_t credit_due(struct watch *watch)
{
        const struct controller *controller = watch->controller;
        uint64_t unused = watch->credit_given - watch->credit_used, now = controller->now.monotonic;
        /* While the operator is uninstalled, what else is queued waits for nothing. */
        uint64_t queued = controller->uninstall.active
                                  ? 0
                                  : queue_count(controller->queue, watch_number(watch)).queued;
        uint64_t taken = unused + queued;
        uint64_t grant = taken < CREDIT_LIMIT ? CREDIT_LIMIT - taken : 0;

        assert(watch->credit_used <= watch->credit_given);
        if (grant >= PORTION)
                return grant;
        if (unused > CREDIT_SPARE)
                watch->credit_runs = 0;
        return now - watch->credit_monotonic < HURRY_USEC ? 0 : watch->credit_runs;
}

static void give_credit(struct watch *watch)
{
        const struct controller *controller = watch->controller;
        uint64_t grant = watch->is_up ? credit_due(watch) : 0;

        if (grant == 0)
                return;
        watch->credit_given += grant;
        watch->credit_runs = 0;
        watch->credit_monotonic = controller->now.monotonic;
        controller->effects->credit(controller->userdata, watch, grant, false);
}

/* ---- the commit */

static bool is_working(const struct controller *controller)
{
        for (size_t i = 0; i < controller->worker_count; i++)
                if (controller->worker[i].given_count > 0)
                        return true;
        return false;
}

void controller_commit_time(struct controller *controller)
{
        controller->commit.is_armed = false;
        controller->commit.due = true;
        controller_settle_soon(controller);
}

/* Commits at once when something waits for it, or nothing else is to be done; while runs come and go, what
 * they have brought is committed together a moment later. A run whose end is lost with us is run again.
 * -EAGAIN: later. */
static int commit(struct controller *controller)
{
        int r;

        if (!controller->commit.due && ledger_dirty(controller->ledger) && is_working(controller) &&
            !ledger_is_full(controller->ledger)) {
                controller_settle_later(controller);
                return 0;
        }
        r = ledger_try_commit(controller->ledger);
        if (r == -EBUSY)
                return r;
        controller->commit.due = false;
        controller->commit.since = 0;
        if (r >= 0)
                controller->effects->committed(controller->userdata);
        return r;
}

/* The ledger's log is being synced, or somebody holds the ledger with a tool: all but runs goes on. Time in
 * which the machine was suspended does not count. */
static int commit_again(struct controller *controller)
{
        uint64_t now = controller->now.monotonic;

        if (controller->commit.since == 0) {
                controller->commit.since = now;
                controller->commit.told = false;
        }
        if (now - controller->commit.since > COMMIT_PATIENCE_USEC)
                return -EBUSY;
        if (!controller->commit.told && now - controller->commit.since > COMMIT_TOLD_USEC) {
                controller->commit.told = true;
                controller_log(
                        controller, LOG_WARNING, NULL, NULL,
                        "the ledger could not be written for a second: another program holds it, or its "
                        "disk is slow. No run begins before it is written; after a minute the operator "
                        "ends");
        }
        controller_settle_later(controller);
        return 0;
}

/* ---- the turn */

/* A run that is due while nobody is free for it waits for a worker, not for a timer that would fire forever.
 */
static void arm_queue(struct controller *controller)
{
        uint64_t due = assign_may(controller) ? queue_next_time(controller->queue) : UINT64_MAX;

        controller->effects->wake(controller->userdata, WAKE_QUEUE, due);
}

static bool has_idle_work(struct controller *controller)
{
        return retry_is_pending(controller) || related_is_pending(controller) ||
               uninstall_is_pending(controller);
}

void controller_settle(struct controller *controller)
{
        int r;

        if (controller->is_over)
                return;
        r = controller->has_cancelled ? outcome_return_unsent(controller) : 0;
        if (r >= 0)
                r = assign_runs(controller);
        if (r >= 0)
                r = commit(controller);
        if (r == -EBUSY && (r = commit_again(controller)) >= 0)
                return;
        if (r < 0) {
                ledger_failed(controller, r);
                return;
        }
        ledger_checkpoint_maybe(controller->ledger);
        assign_send(controller);
        FOREACH_WATCH(watch, controller) {
                handled_send(watch);
                give_credit(watch);
                owed_continue(watch);
        }
        uninstall_review(controller);
        related_hurry(controller);
        if (has_idle_work(controller))
                controller->effects->idle(controller->userdata);
        arm_queue(controller);
}

/* Does one portion of each; the end of the turn asks for the next one. */
void controller_idle(struct controller *controller)
{
        if (controller->is_ending)
                return;
        retry_take(controller);
        related_take(controller);
        uninstall_walk(controller);
}

void controller_see_clock(struct controller *controller)
{
        if (controller->is_over || !schedule_see_clock(controller))
                return;
        due_arm(controller);
        controller_settle_soon(controller);
}
