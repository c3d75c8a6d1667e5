/* SPDX-License-Identifier: Apache-2.0 */
/* Above all that a watch has: each gives up what is its own. */
#include "controller/watch-end.h"

#include <errno.h>
#include <stdlib.h>

#include "controller/change/handled.h"
#include "controller/change/related.h"
#include "controller/marks.h"
#include "controller/order/uninstall.h"
#include "controller/run/refusal.h"
#include "controller/run/retry.h"

void watch_empty(struct watch *watch)
{
        handled_forget(watch);
        free(watch->resource_version);
        refusal_free(watch);
        free(watch->owed_key);
        free(watch->owed_uid);
        retry_forget(watch);
        free(watch->pause_reason);
        marks_forget(&watch->tries);
        marks_forget(&watch->finalized);
        uninstall_watch_done(watch);
        related_forget(watch);
        *watch = (struct watch){.controller = watch->controller, .userdata = watch->userdata};
}

int watch_release(struct watch *watch)
{
        int r = queue_clear(watch->controller->queue, watch_number(watch), 0);

        if (r >= 0)
                watch_empty(watch);
        return r;
}
