/* SPDX-License-Identifier: Apache-2.0 */
/* See restored.h. */
#include "watcher/apply/restored.h"

#include "base/duration.h"

#define WENT_BACK_USEC (10 * USEC_PER_SEC) /* longer than anybody takes a low version for an echo */

bool restored_lately(const struct watcher *watcher)
{
        return watcher->restored.boottime > 0 &&
               clock_boottime_usec() - watcher->restored.boottime < WENT_BACK_USEC;
}

/* In the same transaction as all that follows from it, or an earlier one. */
int restored_note(struct watcher *watcher)
{
        watcher->restored.boottime = clock_boottime_usec();
        watcher->restored.count++;
        return store_restored_set(watcher->store, clock_realtime_usec());
}

/* By a clock that may have been set meanwhile; once too often costs a run. */
int restored_load(struct watcher *watcher)
{
        uint64_t restored, now = clock_realtime_usec();
        int r = store_restored_get(watcher->store, &restored);

        if (r >= 0 && restored > 0 && (restored > now || now - restored < WENT_BACK_USEC))
                watcher->restored.boottime = clock_boottime_usec();
        return r;
}
