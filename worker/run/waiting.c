/* SPDX-License-Identifier: Apache-2.0 */
/* See waiting.h. */
#include "worker/run/waiting.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "worker/run/run.h"

#define PATIENCE_USEC (10 * USEC_PER_MSEC) /* for one run that others wait for */

static int give_back(struct worker *worker, const struct message_run *order)
{
        struct message_done done = {
                .sequence = order->sequence,
                .action = order->action,
                .watch = order->watch,
                .key = order->key,
                .uid = order->uid,
                .result = RESULT_RETURNED,
        };

        return child_send(worker->child, MESSAGE_DONE, &done);
}

/* The last run goes back first: each one becomes the first of its line. */
int waiting_return(struct worker *worker)
{
        int r = 0;

        while (worker->waiting.count > 0) {
                struct message *message = worker->waiting.run[--worker->waiting.count];

                if (r >= 0)
                        r = give_back(worker, &message->run);
                message_free(message);
        }
        return r;
}

static int on_patience_over(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct worker *worker = userdata;
        uint64_t lasted;
        int r = 0;

        if (worker->waiting.count == 0)
                return 0;
        lasted = worker->run ? clock_boottime_usec() - worker->run->started : 0;
        if (lasted >= PATIENCE_USEC) {
                r = waiting_return(worker);
        } else {
                r = sd_event_source_set_time_relative(source, PATIENCE_USEC - lasted);
                if (r >= 0)
                        r = sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        if (r < 0 && !worker->stopping)
                child_fatal(worker->child, EXIT_CODE_SOFTWARE, NULL, NULL, "runs cannot be given back: %s",
                            strerror(-r));
        return 0;
}

/* The timer runs on beside many short runs, and looks at what there is when it goes off: a timer for each
 * of them would cost as much as they do. */
static int be_patient(struct worker *worker)
{
        int enabled = SD_EVENT_OFF, r;

        if (!worker->waiting.patience)
                return sd_event_add_time_relative(worker->child->event, &worker->waiting.patience,
                                                  CLOCK_MONOTONIC, PATIENCE_USEC, USEC_PER_MSEC,
                                                  on_patience_over, worker);
        r = sd_event_source_get_enabled(worker->waiting.patience, &enabled);
        if (r < 0 || enabled != SD_EVENT_OFF)
                return r;
        r = sd_event_source_set_time_relative(worker->waiting.patience, PATIENCE_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(worker->waiting.patience, SD_EVENT_ONESHOT);
}

static void carry_out_runs(void *userdata);

static int start_fiber(struct worker *worker)
{
        return fiber_start(worker->fibers, "runs", carry_out_runs, worker, &worker->waiting.runner);
}

static struct message *take_first(struct worker *worker)
{
        struct message *message = worker->waiting.run[0];

        worker->waiting.count--;
        memmove(worker->waiting.run, worker->waiting.run + 1,
                worker->waiting.count * sizeof(struct message *));
        return message;
}

static int carry_out_first(struct worker *worker) _suspends_
{
        _cleanup_message_ struct message *message = take_first(worker);
        int r = run_carry_out(worker, &message->run);

        if (r == -ECANCELED || (r < 0 && !worker->stopping))
                return r;
        worker->on_run_ended(worker);
        return 0;
}

/* The fiber: one run after the other, as long as there are any. So runs that end as soon as they begin cost no turn of the
 * loop each. After one that was asked to end comes another fiber, which was not. */
static void carry_out_runs(void *userdata) _suspends_
{
        struct worker *worker = userdata;
        int r = 0;

        while (r >= 0 && worker->waiting.count > 0 && !fiber_is_ending(worker->waiting.runner))
                r = carry_out_first(worker);
        worker->waiting.runner = NULL;
        if (r >= 0 && worker->waiting.count > 0)
                r = start_fiber(worker);
        if (r < 0 && r != -ECANCELED)
                child_fatal(worker->child, EXIT_CODE_SOFTWARE, NULL, NULL,
                            "a run cannot be carried out, or its end cannot be reported: %s", strerror(-r));
}

int waiting_take(struct worker *worker, struct message **message)
{
        if (worker->stopping)
                return give_back(worker, &(*message)->run);
        if (worker->waiting.count == WORKER_WAITING_MAX)
                return -EPROTO;
        worker->waiting.run[worker->waiting.count++] = TAKE_PTR(*message);
        if (worker->waiting.runner)
                return be_patient(worker);
        return start_fiber(worker);
}

void waiting_done(struct worker *worker)
{
        while (worker->waiting.count > 0)
                message_free(worker->waiting.run[--worker->waiting.count]);
        sd_event_source_disable_unref(worker->waiting.patience);
}
