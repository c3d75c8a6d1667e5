/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/folders/ledger-clock.h"

#include <string.h>
#include <systemd/sd-id128.h>

#include "base/duration.h"
#include "supervisor/supervisor.h"

#define NOTE_USEC USEC_PER_MINUTE
#define STEP_USEC USEC_PER_SEC /* what differs by less was not set by anybody */

uint64_t ledger_now(const struct supervisor *supervisor)
{
        return clock_boottime_usec() + supervisor->clock.offset;
}

uint64_t ledger_to_boottime(const struct supervisor *supervisor, uint64_t time)
{
        int64_t boottime = (int64_t)(time - supervisor->clock.offset);

        return boottime > 0 ? (uint64_t)boottime : 0; /* before this boot */
}

uint64_t ledger_to_realtime(const struct supervisor *supervisor, uint64_t time)
{
        uint64_t now = ledger_now(supervisor), realtime = clock_realtime_usec();
        uint64_t step = realtime > now ? realtime - now : now - realtime;

        return time == 0 || step < STEP_USEC ? time : time + (realtime - now);
}

void ledger_clock_begin(struct supervisor *supervisor, const struct ledger_clock *left)
{
        uint64_t boottime = clock_boottime_usec(), realtime = clock_realtime_usec();
        uint64_t now = realtime > left->seen ? realtime : left->seen;
        sd_id128_t boot = SD_ID128_NULL;

        if (sd_id128_get_boot(&boot) >= 0)
                sd_id128_to_string(boot, supervisor->clock.boot);
        else
                supervisor->clock.boot[0] = '\0';
        if (supervisor->clock.boot[0] && strcmp(supervisor->clock.boot, left->boot) == 0 &&
            boottime + left->offset >= left->seen)
                now = boottime + left->offset;
        supervisor->clock.offset = now - boottime;
        supervisor->clock.seen = now;
        supervisor->controller.clock_offset = supervisor->clock.offset;
}

bool ledger_clock_is_stale(const struct supervisor *supervisor)
{
        return ledger_now(supervisor) - supervisor->clock.seen >= NOTE_USEC;
}
