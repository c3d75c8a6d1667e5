/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backoff.h"

#include <sys/random.h>

#include "base/duration.h"

uint64_t backoff_next(uint64_t delay, uint64_t max)
{
        return delay > max / 2 ? max : delay * 2;
}

uint64_t backoff_after(uint64_t first, uint64_t max, uint64_t failures)
{
        uint64_t delay = first;

        for (uint64_t i = 1; i < failures && delay < max; i++)
                delay = backoff_next(delay, max);
        return delay;
}

uint64_t random_below(uint64_t below)
{
        uint64_t random = 0;

        if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
                random = clock_boottime_usec(); /* early in the machine's start */
        return below > 0 ? random % below : 0;
}
