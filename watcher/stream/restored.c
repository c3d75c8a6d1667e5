/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/stream/restored.h"

#include "base/duration.h"
#include "store/meta.h"

/* For the list, and the questions about what it lacks. */
#define WENT_BACK_USEC (10 * USEC_PER_SEC)

bool restored_lately(const struct watcher *watcher)
{
        return watcher->restored.boottime > 0 &&
               clock_boottime_usec() - watcher->restored.boottime < WENT_BACK_USEC;
}

/* The time makes it another number than that of any other store. */
int epoch_begin(struct watcher *watcher)
{
        struct store_epoch epoch = {watcher->restored.boottime, clock_realtime_usec()};

        watcher->epoch = epoch.epoch;
        return store_epoch_set(watcher->store, &epoch);
}

/* The note is in the same transaction as all that follows from the restore, or in an earlier one. */
int restored_note(struct watcher *watcher)
{
        watcher->restored.boottime = clock_boottime_usec();
        watcher->restored.count++;
        return epoch_begin(watcher);
}

/* By CLOCK_BOOTTIME, which nobody sets. A time that is still to come is of another boot. */
int restored_load(struct watcher *watcher)
{
        uint64_t now = clock_boottime_usec();
        struct store_epoch epoch;
        int r = store_epoch_get(watcher->store, &epoch);

        watcher->epoch = epoch.epoch;
        if (r < 0 || epoch.restored_boottime == 0 ||
            (epoch.restored_boottime <= now && now - epoch.restored_boottime >= WENT_BACK_USEC))
                return r;
        watcher->restored.boottime = now;
        if (epoch.restored_boottime <= now)
                return 0;
        epoch.restored_boottime = now;
        return store_epoch_set(watcher->store, &epoch);
}
