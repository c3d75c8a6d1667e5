/* SPDX-License-Identifier: Apache-2.0 */
/* The places of watches, with what the supervisor has of them: a child slot, the slot that the watcher
 * writes, the store. */
#include <errno.h>
#include <string.h>

#include "supervisor/supervisor.h"

struct watch_place *place_of(const struct watch *watch)
{
        return watch->userdata;
}

struct child_slot *child_of(const struct watch *watch)
{
        return place_of(watch)->child;
}

struct supervisor *supervisor_of(const struct watch *watch)
{
        return place_of(watch)->supervisor;
}

size_t watches_in_force(const struct supervisor *supervisor)
{
        size_t count = 0;

        FOREACH_WATCH(watch, &supervisor->controller)
                count += !watch->leaving;
        return count;
}

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
        sd_event_source_disable_unref(place->room.timer);
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
        channel_free(place->child->channel);
        place->child->channel = NULL;
        return 0;
}

void watches_free(struct supervisor *supervisor)
{
        for (size_t i = 0; supervisor->place && i < supervisor->controller.watch_room; i++)
                place_empty(&supervisor->place[i]);
        controller_done(&supervisor->controller);
        free(supervisor->place);
}
