/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/controller.h"

#include <errno.h>
#include <stdlib.h>

#include "controller/change/handled.h"
#include "controller/change/related-changes.h"
#include "controller/due/retry.h"
#include "controller/due/watch-refusal.h"
#include "controller/marks.h"
#include "controller/order/uninstall.h"
#include "queue/queue-watch.h"

int controller_init(struct controller *controller, const struct controller_effects *effects, void *userdata,
                    size_t workers, size_t watch_room)
{
        *controller = (struct controller){
                .effects = effects,
                .userdata = userdata,
                .watch = calloc(watch_room, sizeof(struct watch)),
                .watch_room = watch_room,
                .worker = calloc(workers, sizeof(struct worker)),
                .worker_count = workers,
        };
        if (!controller->watch || !controller->worker)
                return -ENOMEM;
        for (size_t i = 0; i < workers; i++)
                controller->worker[i].controller = controller;
        for (size_t i = 0; i < watch_room; i++)
                controller->watch[i].controller = controller;
        return 0;
}

/* Above all that a watch has: each gives up what is its own. */
static void watch_empty(struct watch *watch)
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

void controller_done(struct controller *controller)
{
        for (size_t i = 0; i < controller->worker_count; i++)
                for (size_t j = 0; j < controller->worker[i].given_count; j++)
                        free(controller->worker[i].given[j].news);
        if (controller->watch)
                FOREACH_WATCH(watch, controller)
                        watch_empty(watch);
        free(controller->watch);
        free(controller->worker);
        controller->watch = NULL;
        controller->worker = NULL;
        controller->watch_count = controller->worker_count = 0;
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
