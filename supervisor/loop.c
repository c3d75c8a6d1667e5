/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/loop.h"

#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "controller/controller.h"
#include "controller/due/assigned.h"
#include "controller/run/assign.h"
#include "supervisor/children/doubtful.h"
#include "supervisor/control/control.h"
#include "supervisor/control/tell-gateway.h"
#include "supervisor/lead-lasting.h"
#include "supervisor/lead.h"
#include "supervisor/notify.h"
#include "supervisor/supervisor.h"
#include "supervisor/teardown.h"
#include "supervisor/watches/begin-end.h"

/* ---- pauses in which no worker is listened to
 *
 * While every worker has runs to go on with, no worker waits for us: then ends of runs are heard together.
 * Woken for each of them, we take the processor from the workers, and being woken costs both sides more than
 * reporting the end and writing it down.
 *
 * A worker must never be without work meanwhile. So a pause lasts for half of the time that the worker with
 * the least work is expected to need, and never longer than a millisecond. A worker's own end is noticed at
 * once.
 */

#define REST_MIN_USEC 100
#define REST_MAX_USEC USEC_PER_MSEC

/* 0 if there is none. One run alone may end at any time. */
static uint64_t rest_usec(const struct supervisor *supervisor)
{
        uint64_t usec = REST_MAX_USEC;
        size_t busy = 0;

        if (supervisor->phase != PHASE_RUNNING)
                return 0;
        FOREACH_ARRAY(worker, supervisor->controller.worker, supervisor->controller.worker_count) {
                if (worker_child(worker)->process.state != CHILD_RUNNING)
                        continue;
                if (worker_busy_with(worker) < 2)
                        return 0;
                if (worker->expected_usec / 2 < usec)
                        usec = worker->expected_usec / 2;
                busy++;
        }
        return busy > 0 && usec >= REST_MIN_USEC ? usec : 0;
}

static void listen_not(struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->controller.worker_count; i++) {
                struct child_slot *child = worker_child(&supervisor->controller.worker[i]);

                if (child->process.state == CHILD_RUNNING)
                        (void)channel_listen(child->process.channel,
                                             false); /* else it is only more expensive */
        }
}

static int on_rest_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;

        for (size_t i = 0; i < supervisor->controller.worker_count; i++) {
                struct child_slot *child = worker_child(&supervisor->controller.worker[i]);
                int r = child->process.channel ? channel_listen(child->process.channel, true) : 0;

                if (r < 0)
                        supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, child, NULL,
                                         "a worker cannot be listened to: %s", strerror(-r));
        }
        return 0;
}

static int arm_pause(struct supervisor *supervisor, uint64_t usec)
{
        int r;

        if (!supervisor->listen_timer)
                return sd_event_add_time_relative(supervisor->event, &supervisor->listen_timer,
                                                  CLOCK_MONOTONIC, usec, 1, on_rest_over, supervisor);
        r = sd_event_source_set_time_relative(supervisor->listen_timer, usec);
        return r < 0 ? r : sd_event_source_set_enabled(supervisor->listen_timer, SD_EVENT_ONESHOT);
}

static void listen_pause_maybe(struct supervisor *supervisor)
{
        int enabled = SD_EVENT_OFF;
        uint64_t usec;

        if (supervisor->listen_timer)
                (void)sd_event_source_get_enabled(supervisor->listen_timer, &enabled);
        if (enabled != SD_EVENT_OFF)
                return;
        usec = rest_usec(supervisor);
        if (usec > 0 && arm_pause(supervisor, usec) >= 0)
                listen_not(supervisor);
}

/* ---- turns */

static int on_settle(sd_event_source *source _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;
        struct worker *worker;

        turn_is(supervisor, "the end of a turn");
        if (supervisor->phase == PHASE_TEARDOWN)
                return 0;
        worker = assign_next(&supervisor->controller);
        if (worker && crash_events_send(supervisor, worker) < 0)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                                 "no memory for an Event on a crash");
        controller_settle(&supervisor->controller);
        lasting_review(supervisor);
        memory_retry_continue(supervisor);
        control_continue(supervisor);
        if (supervisor->phase == PHASE_STOPPING_WORKERS)
                teardown_continue(supervisor); /* maybe it waited for an order to be in the record */
        notify_status(supervisor);
        gateway_tell_change(supervisor);
        listen_pause_maybe(supervisor);
        return 0;
}

int loop_prepare(struct supervisor *supervisor)
{
        int r = sd_event_add_defer(supervisor->event, &supervisor->settle_source, on_settle, supervisor);

        if (r >= 0)
                r = sd_event_source_set_priority(supervisor->settle_source, SETTLE_PRIORITY);
        return r < 0 ? r : sd_event_source_set_enabled(supervisor->settle_source, SD_EVENT_OFF);
}

/* One turn, as sd_event_run() does it. */
static int run_once(struct supervisor *supervisor)
{
        int r = sd_event_prepare(supervisor->event);

        if (r == 0)
                r = sd_event_wait(supervisor->event, UINT64_MAX);
        effects_tell_time(supervisor);
        turn_begin(&supervisor->turns, supervisor->controller.now.monotonic);
        lead_see_time(supervisor);
        if (r > 0)
                r = sd_event_dispatch(supervisor->event);
        teardown_begin(supervisor);
        turn_end(&supervisor->turns);
        return r;
}

int loop_run(struct supervisor *supervisor)
{
        int code = 0, r = 0;

        turns_begin(&supervisor->turns);
        while (r >= 0 && sd_event_get_state(supervisor->event) != SD_EVENT_FINISHED)
                r = run_once(supervisor);
        if (r >= 0)
                r = sd_event_get_exit_code(supervisor->event, &code);
        return r < 0 ? r : code;
}
