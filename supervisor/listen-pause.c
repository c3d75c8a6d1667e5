/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/listen-pause.h"

#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "supervisor/children/child-slot.h"
#include "supervisor/fatal.h"
#include "supervisor/phase.h"
#include "supervisor/supervisor.h"

#define REST_MIN_USEC 100
#define REST_MAX_USEC USEC_PER_MSEC

/* 0: none. One run alone may end at any time. */
static uint64_t rest_usec(const struct supervisor *supervisor)
{
        uint64_t usec = REST_MAX_USEC;
        size_t busy = 0;

        if (supervisor->phase != PHASE_RUNNING)
                return 0;
        for (size_t i = 0; i < supervisor->controller.worker_count; i++) {
                const struct worker *worker = &supervisor->controller.worker[i];

                if (worker_child(worker)->process.state != CHILD_RUNNING)
                        continue;
                if (worker->given_count < 2)
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

void listen_pause_maybe(struct supervisor *supervisor)
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
