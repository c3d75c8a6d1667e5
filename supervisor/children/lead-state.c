/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/lead-state.h"

#include <signal.h>

#include "base/exit-code.h"
#include "supervisor/supervisor.h"

bool lead_is_due(const struct child_slot *child)
{
        return child->supervisor->phase != PHASE_FOLLOWING ||
               !(child->process.role & (ROLE_WATCHER | ROLE_WORKER));
}

void lead_tell(const struct child_slot *child)
{
        const struct supervisor_lead *lead = &child->supervisor->lead;

        if (lead->child && child->process.state == CHILD_RUNNING)
                (void)channel_send(child->process.channel, MESSAGE_LEAD,
                                   &(struct message_lead){.epoch = lead->epoch,
                                                          .clean = lead->clean,
                                                          .stop_boottime = lead->stop_boottime,
                                                          .kill_boottime = lead->kill_boottime});
}

bool lead_release(struct supervisor *supervisor, bool proven)
{
        struct supervisor_lead *lead = &supervisor->lead;
        const struct child_slot *child = lead->child;

        lead_done(supervisor);
        if (!child || child->process.state == CHILD_GONE)
                return false;
        if (lead->is_releasing)
                return true;
        lead->is_releasing = true;
        if (proven && !lead->is_cut_off && supervisor->exit_code == EXIT_CODE_OK &&
            child->process.state == CHILD_RUNNING &&
            channel_send(child->process.channel, MESSAGE_RELEASE,
                         &(struct message_release){.successor = lead->successor}) >= 0)
                child_set_state(lead->child, CHILD_STOPPING);
        else
                child_signal(lead->child, SIGKILL);
        return true;
}

void lead_done(struct supervisor *supervisor)
{
        supervisor->lead.stop_timer = sd_event_source_disable_unref(supervisor->lead.stop_timer);
}
