/* SPDX-License-Identifier: Apache-2.0 */
/* See waiting.h. */
#include "worker/run/waiting.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "worker/run/stages.h"

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

static int begin_next(struct worker *worker)
{
        _cleanup_message_ struct message *message = worker->waiting.run[0];

        worker->waiting.count--;
        memmove(worker->waiting.run, worker->waiting.run + 1,
                worker->waiting.count * sizeof(struct message *));
        return run_start(worker, &message);
}

/* Runs that end as soon as they begin are followed by the next one at once: nothing else would wake us. */
static int before_sleep(sd_event_source *source _unused_, void *userdata)
{
        struct worker *worker = userdata;
        int r = 0;

        while (r >= 0 && !worker->run && worker->waiting.count > 0)
                r = begin_next(worker);
        if (r < 0)
                child_fatal(worker->child, EXIT_CODE_SOFTWARE, NULL, NULL, "a run cannot be started: %s",
                            strerror(-r));
        return 0;
}

static int never(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata _unused_)
{
        return 0;
}

/* The next run is begun before the loop sleeps, by a source that does nothing else. It cannot begin where
 * the run before it ends, because the caller is still in the middle of that; and a turn of its own would
 * cost as much as a short run. */
static int begin_before_sleep(struct worker *worker)
{
        int r;

        if (worker->waiting.next)
                return 0;
        r = sd_event_add_time(worker->child->event, &worker->waiting.next, CLOCK_MONOTONIC, UINT64_MAX, 0,
                              never, worker);
        return r < 0 ? r : sd_event_source_set_prepare(worker->waiting.next, before_sleep);
}

int waiting_take(struct worker *worker, struct message **message)
{
        int r;

        if (worker->stopping)
                return give_back(worker, &(*message)->run);
        if (!worker->run && worker->waiting.count == 0)
                return run_start(worker, message);
        if (worker->waiting.count == WORKER_WAITING_MAX)
                return -EPROTO;
        r = begin_before_sleep(worker);
        if (r < 0)
                return r;
        worker->waiting.run[worker->waiting.count++] = TAKE_PTR(*message);
        return be_patient(worker);
}

void waiting_done(struct worker *worker)
{
        while (worker->waiting.count > 0)
                message_free(worker->waiting.run[--worker->waiting.count]);
        sd_event_source_disable_unref(worker->waiting.next);
        sd_event_source_disable_unref(worker->waiting.patience);
}
