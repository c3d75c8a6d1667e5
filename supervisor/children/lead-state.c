/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/lead-state.h"

#include <signal.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "queue/look.h"
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
        bool late;

        lead_done(supervisor);
        if (!child || child->process.state == CHILD_GONE)
                return false;
        if (lead->is_releasing)
                return true;
        lead->is_releasing = true;
        late = lead->is_cut_off || supervisor->exit_code != EXIT_CODE_OK;
        if (proven && child->process.state == CHILD_RUNNING && lead->state != LEAD_LOST &&
            channel_send(child->process.channel, MESSAGE_RELEASE,
                         &(struct message_release){.successor = lead->successor, .late = late}) >= 0)
                child_set_state(lead->child, CHILD_STOPPING);
        else
                child_signal(lead->child, SIGKILL);
        return true;
}

void lead_done(struct supervisor *supervisor)
{
        struct supervisor_lead *lead = &supervisor->lead;

        lead->stop_timer = sd_event_source_disable_unref(lead->stop_timer);
        lead->lasting.timer = sd_event_source_disable_unref(lead->lasting.timer);
}

/* ---- what must outlive it */

/* If the record cannot be written for so long, runs begin all the same: the trouble is reported, and an
 * object that kills all is found later. */
#define NAME_PATIENCE_USEC (5 * USEC_PER_SEC)

void lasting_is_due(struct supervisor *supervisor)
{
        supervisor->lead.lasting.is_due = true;
}

uint64_t lasting_order(struct supervisor *supervisor)
{
        struct supervisor_lasting *lasting = &supervisor->lead.lasting;

        if (!supervisor->lead.child)
                return 0;
        lasting->is_due = lasting->is_ordered = true;
        turn_settle_soon(supervisor);
        return lasting->serial + 1;
}

bool lasting_may_leave(void *userdata, struct assignment *given)
{
        struct supervisor *supervisor = userdata;
        struct supervisor_lasting *lasting = &supervisor->lead.lasting;

        if (!supervisor->lead.child ||
            (lasting->names_until == 0 && !queue_is_alone(supervisor->controller.queue, given->run.id)))
                return true;
        if (given->named == 0) {
                given->named = lasting->serial + 1;
                lasting->is_due = lasting->is_ordered = true; /* also where the same run is named again */
        }
        return given->named <= lasting->recorded ||
               clock_boottime_usec() > given->since + NAME_PATIENCE_USEC;
}
