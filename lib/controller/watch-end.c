/* SPDX-License-Identifier: Apache-2.0 */
/* Above all that a watch has: each gives up what is its own. */
#include "controller/watch-end.h"
#include <stdlib.h>

#include "controller/change/handled.h"
#include "controller/change/related-changes.h"
#include "controller/controller-watch.h"
#include "controller/due/retry.h"
#include "controller/due/watch-refusal.h"
#include "controller/marks.h"
#include "controller/order/uninstall.h"
#include "queue/queue-watch.h"

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

int watch_renew(struct watch *watch)
{
        struct controller *controller = watch->controller;
        const struct watch kept = *watch;
        int r = queue_clear(controller->queue, watch_number(watch), watch_limit(controller, watch->config));

        if (r < 0)
                return r;
        watch_empty(watch);
        watch_fill(watch, kept.config);
        watch->health = kept.health;
        watch->metrics = kept.metrics;
        watch->successes = kept.successes;
        watch->failures_total = kept.failures_total;
        return 0;
}
