/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/due/may-run.h"

#include <string.h>

#include "queue/queue-watch.h"

const char *owned_awaited(const struct watch *parent)
{
        const struct controller *controller = parent->controller;
        const struct config *config = controller->config;

        for (size_t i = 0; i < config->watch_count; i++) {
                const struct config_watch *other = &config->watch[i];
                const struct watch *watch;

                if (!other->owner || strcmp(other->owner, parent->config->name) != 0)
                        continue;
                watch = watch_find(controller, other->name);
                if (!watch || (!watch->synced && watch->health != WATCH_ABSENT))
                        return other->name;
        }
        return NULL;
}

void pause_apply(struct watch *watch)
{
        queue_pause(watch->controller->queue, watch_number(watch),
                    watch->paused_realtime > 0 || owned_awaited(watch) || watch->awaits_token ||
                            watch->controller->uninstall.active);
}

void owned_known(struct watch *watch)
{
        struct watch *parent =
                watch->config->owner ? watch_find(watch->controller, watch->config->owner) : NULL;

        if (parent)
                pause_apply(parent);
}
