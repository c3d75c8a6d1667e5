/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database that was restored from a backup, and so went back in time. For a while afterwards what is
 * announced has no version: the supervisor holds versions against those of our own last writes to an object,
 * which are of the time that is lost, so a change with a lower version would pass for one of these writes. A
 * watcher that is killed in that time, before the supervisor has heard of such a change, leaves it to the
 * next one; so the time of the restore is in the store.
 */
#include "base/duration.h"
#include "watcher/watcher.h"

#define WENT_BACK_USEC (10 * USEC_PER_SEC) /* longer than anybody takes a low version for an echo */

bool restored_lately(const struct watcher *watcher)
{
        return watcher->went_back_boottime > 0 &&
               clock_boottime_usec() - watcher->went_back_boottime < WENT_BACK_USEC;
}

/* In the same transaction as all that follows from it, or an earlier one. */
int restored_note(struct watcher *watcher)
{
        watcher->went_back_boottime = clock_boottime_usec();
        watcher->restores++;
        return store_restored_set(watcher->store, clock_realtime_usec());
}

/* By a clock that may have been set meanwhile; once too often costs a run. */
int restored_load(struct watcher *watcher)
{
        uint64_t restored, now = clock_realtime_usec();
        int r = store_restored_get(watcher->store, &restored);

        if (r >= 0 && restored > 0 && (restored > now || now - restored < WENT_BACK_USEC))
                watcher->went_back_boottime = clock_boottime_usec();
        return r;
}
