/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/loop.h"

#include "base/exit-code.h"
#include "controller/run/assign.h"
#include "controller/settle.h"
#include "supervisor/carry-out.h"
#include "supervisor/children/crash-events.h"
#include "supervisor/control/control.h"
#include "supervisor/control/tell-gateway.h"
#include "supervisor/fatal.h"
#include "supervisor/listen-pause.h"
#include "supervisor/notify.h"
#include "supervisor/phase.h"
#include "supervisor/supervisor.h"
#include "supervisor/teardown.h"
#include "supervisor/turn.h"
#include "supervisor/watches/memory-retry.h"

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
        memory_retry_continue(supervisor);
        control_continue(supervisor);
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

/* One turn; what sd_event_run() does. */
static int run_once(struct supervisor *supervisor)
{
        int r = sd_event_prepare(supervisor->event);

        if (r == 0)
                r = sd_event_wait(supervisor->event, UINT64_MAX);
        effects_tell_time(supervisor);
        turn_begin(&supervisor->turns, supervisor->controller.now.monotonic);
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
