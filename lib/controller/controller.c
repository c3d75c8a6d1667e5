/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/controller.h"

#include <errno.h>
#include <stdlib.h>

#include "controller/watch-end.h"

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
