/* SPDX-License-Identifier: Apache-2.0 */
/* See begin-end.h. */
#include "supervisor/watches/begin-end.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "controller/run/assign.h"
#include "controller/watch-end.h"
#include "os/slot.h"
#include "queue/watch.h"
#include "supervisor/control/slowest.h"
#include "supervisor/folders/secrets.h"
#include "supervisor/handlers/access-state.h"
#include "supervisor/supervisor.h"
#include "supervisor/turn.h"
#include "supervisor/watches/place.h"

int watches_new(struct supervisor *supervisor)
{
        struct controller *controller = &supervisor->controller;
        size_t room = controller->watch_room;

        supervisor->place = calloc(room, sizeof(struct watch_place));
        if (!supervisor->place)
                return -ENOMEM;
        for (size_t i = 0; i < room; i++) {
                supervisor->place[i].supervisor = supervisor;
                controller->watch[i].userdata = &supervisor->place[i];
        }
        return 0;
}

static void place_empty(struct watch_place *place)
{
        free(place->store_folder);
        free(place->missing_namespaces);
        free(place->degraded_reason);
        free(place->heard.reason);
        sd_event_source_disable_unref(place->memory_retry.timer);
        sd_event_source_disable_unref(place->owed_source);
        *place = (struct watch_place){.supervisor = place->supervisor, .child = place->child};
}

int watch_begin(struct supervisor *supervisor, const struct config_watch *config, struct watch **ret)
{
        char *folder = secrets_store_folder(supervisor, config);
        int r = folder ? watch_take(&supervisor->controller, config, ret) : -ENOMEM;

        if (r < 0) {
                free(folder);
                return r;
        }
        secrets_move(supervisor, config);
        place_of(*ret)->store_folder = folder;
        (*ret)->awaits_token = access_awaited(*ret);
        return 0;
}

int watch_end(struct watch *watch)
{
        struct supervisor *supervisor = supervisor_of(watch);
        struct watch_place *place = place_of(watch);
        unsigned number = watch_number(watch);
        struct slot_view view;
        int r = watch_release(watch);

        if (r < 0)
                return r;
        /* A slot that was left by a watcher that was killed is not the next one's. */
        if (slots_look(supervisor->slots, number, &view) >= 0)
                (void)slots_clear(supervisor->slots, number);
        slowest_forget_watch(&supervisor->slowest, number);
        place_empty(place);
        channel_free(place->child->process.channel);
        place->child->process.channel = NULL;
        return 0;
}

void watches_free(struct supervisor *supervisor)
{
        for (size_t i = 0; supervisor->place && i < supervisor->controller.watch_room; i++)
                place_empty(&supervisor->place[i]);
        controller_done(&supervisor->controller);
        free(supervisor->place);
}

void watch_leave(struct watch *watch, uint64_t grace_usec)
{
        watch->leaving = true;
        place_of(watch)->leave_by = clock_monotonic_usec() + grace_usec;
        queue_close(watch->controller->queue, watch_number(watch));
}

void watch_begin_anew(struct watch *watch)
{
        struct supervisor *supervisor = supervisor_of(watch);

        FOREACH_WATCH(other, &supervisor->controller)
                if (!other->leaving && other->config->owner &&
                    strcmp(other->config->owner, watch->config->name) == 0)
                        watch_leave(other, supervisor->config->stop_grace_usec);
        watch_leave(watch, supervisor->config->stop_grace_usec);
        assign_recall(&supervisor->controller, "its watch begins anew");
        supervisor->reload.changing = true;
        turn_settle_soon(supervisor);
}
