/* SPDX-License-Identifier: Apache-2.0 */
/* See batch.h. */
#include "worker/run/together/batch.h"

#include <errno.h>

#include "worker/run/coprocess.h"
#include "worker/waiting.h"

static bool is_full(const struct run *run)
{
        return coprocess_count_waiting(run->watch->coprocess) >= asked_together(run);
}

static bool is_called_off(const struct run *run, const struct asked *asked)
{
        return asked->id == 0 && waiting_is_called_off(run);
}

/* Waits until the request is over or called off, or nobody leads any more. */
static int follow(struct run *run, const struct asked *asked) _suspends_
{
        int r = 0;

        waiting_gather(run);
        while (!asked->is_over && !run->dropped && !is_called_off(run, asked) &&
               (asked->id > 0 || (r >= 0 && run->watch->leader)))
                r = fiber_suspend("the batch that it is in");
        waiting_gathered(run);
        return !asked->is_over && (is_called_off(run, asked) || r < 0) ? waiting_call_off(run) : 0;
}

static int gather(struct run *run) _suspends_
{
        uint64_t wait = run->watch->config->batch_wait_usec;

        return is_full(run) || wait == 0 ? 0 : waiting_gather_for(run, wait);
}

static int run_batch(struct run *run) _suspends_
{
        int r = waiting_turn(run);

        if (r < 0)
                return r;
        coprocess_start_batch(run);
        while (coprocess_is_running(run->watch->coprocess) && !run->dropped)
                (void)!fiber_suspend("the handler of its batch");
        waiting_turn_over(run);
        return 0;
}

static int lead(struct run *run) _suspends_
{
        struct worker_watch *watch = run->watch;
        int r;

        watch->leader = run;
        r = gather(run);
        if (r == -ECANCELED && !run->dropped)
                r = waiting_call_off(run);
        if (r >= 0)
                r = run_batch(run);
        watch->leader = NULL;
        coprocess_wake_waiting(watch->coprocess); /* one of them leads the next one */
        return r;
}

int batch_ask(struct run *run, struct asked *asked)
{
        int r = coprocess_join(run, asked);

        if (r < 0)
                return r;
        if (is_full(run))
                fiber_end_sleep(&run->watch->gathering);
        if (run->watch->leader)
                r = follow(run, asked);
        if (r >= 0 && !asked->is_over && !run->dropped)
                r = lead(run);
        coprocess_leave(run, asked);
        return run->dropped ? -ECANCELED : r;
}
