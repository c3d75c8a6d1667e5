/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/parked/park.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "ipc/message-id.h"
#include "os/kept.h"
#include "worker/confidential.h"
#include "worker/given.h"

#define SOON_USEC   USEC_PER_SEC
#define SELDOM_USEC (15 * USEC_PER_SEC)

int park_run(struct run *run, const struct park_plan *plan, uint64_t after_usec, const char *text)
{
        _cleanup_text_ struct text written = TEXT_EMPTY;
        struct park_plan whole = *plan;
        int r;

        if (!plan->cause[0])
                whole.given = (char *)(uintptr_t)given_keep(run);
        r = park_plan_write(&whole, &written);
        if (r == -E2BIG)
                log_warning(
                        "watch %s, %s: the state of the attempt is too large to keep: its children are not "
                        "restored if it fails, and the next run deletes what the answer leaves out",
                        run->order->watch, run->order->key);
        if ((r < 0 && r != -E2BIG) || written.size > PARK_PLAN_MAX)
                return run_finish(run, RESULT_RETRY, "%s; %s: %s", plan->cause[0] ? plan->cause : text,
                                  plan->cause[0] ? "its changes cannot be undone"
                                                 : "the operator cannot wait for that",
                                  r == -E2BIG ? "the names of its children are too long together"
                                              : strerror(-r));
        run->parked.plan = text_take(&written);
        run->parked.after_usec = after_usec;
        return run_finish(run, RESULT_SETTLING, "%s", text);
}

uint64_t park_now(const struct run *run)
{
        return clock_boottime_usec() + run->worker->config->clock_offset;
}

/* The time in which the server did not answer does not count against the dependents: their controllers
 * had no server either, or we could not see their work. After such a time they are looked at once more at
 * least, but not forever where each answer is slow. */
void park_count_time(struct dependents *dependents)
{
        struct park_plan *plan = &dependents->plan;
        uint64_t now = park_now(dependents->run), lost;

        if (plan->answered == 0 || plan->answered > now)
                plan->answered = now;
        plan->silent = plan->silent || dependents->server.silent;
        if (dependents->server.silent || dependents->server.asked == 0)
                return;
        lost = plan->silent ? now - plan->answered : dependents->server.slow_usec;
        plan->deadline += lost;
        if (lost > 0 && !plan->slow && plan->deadline < now + SOON_USEC)
                plan->deadline = now + SOON_USEC;
        plan->slow = dependents->server.slow_usec > 0;
        plan->silent = false;
        plan->answered = now;
}

/* The plan's time does not run meanwhile, and nothing is sent before a Retry-After is over. */
uint64_t park_silence_delay(const struct dependents *dependents)
{
        uint64_t held = dependents->run->request.held_until, now = clock_boottime_usec();
        uint64_t delay = (park_now(dependents->run) - dependents->plan.answered) / 4;

        if (delay < SOON_USEC)
                delay = SOON_USEC;
        if (delay > SELDOM_USEC)
                delay = SELDOM_USEC;
        return held > now + delay ? held - now : delay;
}

void park_forget_resumed(struct run *run)
{
        if (run->parked.resumed)
                park_plan_done(run->parked.resumed);
        free(run->parked.resumed);
        run->parked.resumed = NULL;
}

static int keep_former_state(const struct worker *worker, struct dependent *dependent)
{
        char id[KEPT_ID_SIZE];
        int r = kept_write(worker->config->kept_folder, dependent->previous, strlen(dependent->previous),
                           id);

        dependent->kept = strdup(r >= 0 ? id : "");
        return r < 0 ? r : dependent->kept ? 0 : -ENOMEM;
}

void former_keep(struct dependents *dependents)
{
        const struct run *run = dependents->run;

        FOREACH_ARRAY(dependent, dependents->wanted.item, dependents->wanted.count) {
                char name[600];
                int r = 0;

                if (dependent->touched && dependent->previous && !dependent->kept &&
                    is_confidential(run->worker, dependent->api_version, dependent->kind))
                        r = keep_former_state(run->worker, dependent);
                if (r < 0)
                        log_warning("watch %s, %s: the former content of %s cannot be kept in memory: %s",
                                    run->order->watch, run->order->key,
                                    dependent_describe(dependent, name, sizeof(name)), strerror(-r));
        }
}

void former_find(struct dependents *dependents)
{
        struct dependent_list *list = &dependents->plan.undo;

        FOREACH_ARRAY(dependent, list->item, list->count)
                if (dependent->kept && !dependent->previous)
                        dependent->lost = kept_read(dependents->run->worker->config->kept_folder,
                                                    dependent->kept, &dependent->previous) < 0;
}

void former_drop(const struct run *run, const struct dependent_list *list)
{
        for (size_t i = 0; i < list->count; i++)
                if (list->item[i].kept)
                        kept_drop(run->worker->config->kept_folder, list->item[i].kept);
}

void former_leave_lost(struct dependents *dependents, struct dependent *dependent)
{
        const struct message_run *order = dependents->run->order;
        char name[600], *cause;

        dependent_describe(dependent, name, sizeof(name));
        dependent->settled = true;
        log_write(LOG_WARNING, MESSAGE_ID_SECRET_LOST,
                  LOG_FIELDS({"RECONCILED_WATCH", order->watch}, {"RECONCILED_KEY", order->key},
                             {"RECONCILED_UID", order->uid}),
                  "watch %s, %s: %s is not rolled back: its former content was kept in memory only and is "
                  "lost; it stays as the failed attempt has made it",
                  order->watch, order->key, name);
        if (asprintf(&cause, "%.1200s; %s is not rolled back: what it was before is lost",
                     dependents->plan.cause, name) < 0)
                return;
        free(dependents->plan.cause);
        dependents->plan.cause = cause;
}
