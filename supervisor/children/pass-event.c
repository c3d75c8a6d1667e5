/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/pass-event.h"

#include "supervisor/children/child-slot.h"
#include "supervisor/supervisor.h"

/* The worker that counts the Events of this object. NULL: none is there for long enough. */
static struct worker *counting_worker(const struct supervisor *supervisor, uint64_t object)
{
        for (size_t i = 0; i < supervisor->controller.worker_count; i++) {
                struct worker *worker =
                        &supervisor->controller.worker[(object % supervisor->controller.worker_count + i) %
                                                       supervisor->controller.worker_count];

                if (worker_child(worker)->process.state == CHILD_RUNNING)
                        return worker;
        }
        return NULL;
}

void event_pass_on(struct worker *from, const struct message_report *report)
{
        struct worker *to = counting_worker(from->controller->userdata, report->object);
        struct message_report copy = *report;

        copy.counted = true;
        copy.back = !to || to == from;
        if (!copy.back)
                (void)channel_send(worker_child(from)->process.channel, MESSAGE_REPORTED,
                                   &(struct message_reported){.identity = report->identity});
        (void)channel_send(copy.back ? worker_child(from)->process.channel
                                     : worker_child(to)->process.channel,
                           MESSAGE_REPORT, &copy);
}
