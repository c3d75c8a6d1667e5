/* SPDX-License-Identifier: Apache-2.0 */
/* When an object is due again: backoffs, resyncs, and what the server's Retry-After has held back. */
#include "controller/due/next-attempt.h"

#include "base/backoff.h"
#include "base/duration.h"
#include "controller/effects.h"

#define RESYNC_GRAIN_USEC (60 * USEC_PER_SEC)
#define SPREAD_RUNS       128

/* first, x2 a failure, capped; up to a tenth more, so that what failed together does not come back together.
 */
uint64_t retry_delay(struct controller *controller, const struct config_watch *config, uint64_t attempts)
{
        uint64_t delay = backoff_after(config->retry_first_usec, config->retry_max_usec, attempts);

        return delay + controller_random(controller, delay / 10 + 1);
}

/* All that was held back may go at the same moment. */
uint64_t held_delay(struct controller *controller, uint64_t held_usec)
{
        return held_usec + controller_random(controller, held_usec / 10 + 1);
}

#define THROTTLE_MAX 610 /* units, as kopf has it */

uint64_t throttle_units(uint64_t number)
{
        uint64_t one = 1, two = 1;

        for (uint64_t i = 2; i < number && two < THROTTLE_MAX; i++) {
                uint64_t sum = one + two;

                one = two;
                two = sum;
        }
        return two;
}

/* ---- resync */

/* What is added to a resync: up to a tenth of it, so that what was handled together does not come back
 * together; the same for those that succeed one after another, because each place in the index of the ledger
 * is a page to be written. */
static uint64_t resync_spread(struct watch *watch, uint64_t resync_usec)
{
        if (watch->spread_left == 0) {
                watch->spread_usec = controller_random(watch->controller, resync_usec / 10 + 1);
                watch->spread_left = SPREAD_RUNS;
        }
        watch->spread_left--;
        return watch->spread_usec;
}

/* When it is due is in an index of the ledger, in which every change costs as much as the row itself: the
 * time that is there stays, and due.c counts from the last success. Whole minutes, so that neighbours in
 * time are neighbours in the index. */
uint64_t resync_time(struct watch *watch, const struct ledger_row *row, uint64_t now)
{
        uint64_t resync_usec = watch->config->resync_usec, due;
        uint64_t latest = now + resync_usec + resync_usec / 10 + RESYNC_GRAIN_USEC;

        if (resync_usec > DELAY_IN_QUEUE_USEC && row->next_reason == RUN_RESYNC &&
            row->next_realtime > now + DELAY_IN_QUEUE_USEC && row->next_realtime <= latest)
                return row->next_realtime;
        if (resync_usec <= DELAY_IN_QUEUE_USEC)
                return now + resync_usec + controller_random(watch->controller, resync_usec / 10 + 1);
        due = now + resync_usec + resync_spread(watch, resync_usec);
        return due + RESYNC_GRAIN_USEC - due % RESYNC_GRAIN_USEC;
}
