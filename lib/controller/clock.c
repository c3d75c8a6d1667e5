/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/clock.h"

void controller_tell_time(struct controller *controller, const struct controller_now *now)
{
        controller->now = *now;
}

uint64_t ledger_time(const struct controller *controller)
{
        return controller->now.boottime + controller->clock_offset;
}

uint64_t ledger_time_to_boottime(const struct controller *controller, uint64_t time)
{
        int64_t boottime = (int64_t)(time - controller->clock_offset);

        return boottime > 0 ? (uint64_t)boottime : 0; /* before this boot */
}
