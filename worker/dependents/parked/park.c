/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/parked/park.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"

#define SOON_USEC   USEC_PER_SEC
#define SELDOM_USEC (15 * USEC_PER_SEC)

int park_run(struct run *run, const struct park_plan *plan, uint64_t after_usec, const char *text)
{
        _cleanup_text_ struct text written = TEXT_EMPTY;
        int r = park_plan_write(plan, &written);

        if (r == -E2BIG)
                log_warning(
                        "watch %s, %s: the state of the attempt is too large to keep: its children are not "
                        "restored if it fails, and the next run deletes what the answer leaves out",
                        run->order->watch, run->order->key);
        if ((r < 0 && r != -E2BIG) || written.size > PARK_PLAN_MAX)
                return run_finish(run, RESULT_RETRY, "%s; its changes cannot be undone: %s", plan->cause,
                                  strerror(-r));
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
 * least, but not for ever where each answer is slow. */
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
