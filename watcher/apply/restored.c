/* SPDX-License-Identifier: Apache-2.0 */
/* See restored.h. */
#include "watcher/apply/restored.h"

#include "base/duration.h"
#include "store/meta.h"

/* in this time the supervisor may take a low version for an echo */
#define WENT_BACK_USEC (10 * USEC_PER_SEC)

bool restored_lately(const struct watcher *watcher)
{
        return watcher->restored.boottime > 0 &&
               clock_boottime_usec() - watcher->restored.boottime < WENT_BACK_USEC;
}

/* The note is in the same transaction as all that follows from the restore, or in an earlier one. */
int restored_note(struct watcher *watcher)
{
        watcher->restored.boottime = clock_boottime_usec();
        watcher->restored.count++;
        return store_restored_set(watcher->store, watcher->restored.boottime);
}

/* By CLOCK_BOOTTIME, which nobody sets. A time that is still to come is of another boot, or of a release that
 * noted CLOCK_REALTIME: a wrong yes costs one run. */
int restored_load(struct watcher *watcher)
{
        uint64_t restored, now = clock_boottime_usec();
        int r = store_restored_get(watcher->store, &restored);

        if (r < 0 || restored == 0 || (restored <= now && now - restored >= WENT_BACK_USEC))
                return r;
        watcher->restored.boottime = now;
        return restored > now ? store_restored_set(watcher->store, now) : 0;
}
