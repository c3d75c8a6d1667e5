/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/watches/begin-end.h"
#include "supervisor/handlers/stamp.h"

#include <assert.h>
#include <errno.h>

#include "controller/change/epoch.h"
#include "controller/change/unsure.h"
#include "controller/order/pause.h"
#include "controller/watch-end.h"
#include "os/slot.h"
#include "supervisor/children/child-slot.h"
#include "supervisor/children/start.h"
#include "supervisor/folders/secrets.h"
#include "supervisor/handlers/access-state.h"
#include "supervisor/supervisor.h"
#include "supervisor/watches/place.h"

int supervisor_watches_new(struct supervisor *supervisor)
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

static void place_done(struct watch_place *place)
{
        free(place->store_folder);
        free(place->missing_namespaces);
        free(place->degraded_reason);
        free(place->heard.reason);
        sd_event_source_disable_unref(place->memory_retry.timer);
        sd_event_source_disable_unref(place->owed_source);
}

/* Reads what the ledger keeps under the name of the watch. */
static int watch_load(struct watch *watch)
{
        int r;

        watch->awaits_token = access_awaited(watch);
        r = pause_load(watch);
        if (r >= 0)
                r = unsure_load(watch);
        return r < 0 ? r : epoch_load(watch);
}

int watch_begin(struct supervisor *supervisor, const struct config_watch *config)
{
        char *folder = secrets_store_folder(supervisor, config);
        struct watch *watch;
        int r = folder ? watch_take(&supervisor->controller, config, &watch) : -ENOMEM;

        if (r < 0) {
                free(folder);
                return r;
        }
        secrets_move(supervisor, config);
        place_of(watch)->store_folder = folder;
        return watch_load(watch);
}

int watch_begin_again(struct watch *watch)
{
        struct supervisor *supervisor = supervisor_of(watch);
        struct child_slot *child = child_of(watch);
        struct slot_view view;
        int r;

        assert(child->process.state == CHILD_GONE);
        r = watch_renew(watch);
        if (r < 0)
                return r;
        /* The watcher was killed, and has not cleared it. */
        if (slots_look(supervisor->slots, watch_number(watch), &view) >= 0)
                (void)slots_clear(supervisor->slots, watch_number(watch));
        place_of(watch)->owed_source = sd_event_source_disable_unref(place_of(watch)->owed_source);
        channel_free(child->process.channel);
        child->process.channel = NULL;
        supervisor->controller.due.synced = SIZE_MAX; /* its due rows are looked for when it is in sync */
        r = watch_load(watch);
        if (r >= 0)
                r = handler_take_up(watch);
        return r < 0 ? r : child_start(child);
}

void supervisor_watches_free(struct supervisor *supervisor)
{
        for (size_t i = 0; supervisor->place && i < supervisor->controller.watch_room; i++)
                place_done(&supervisor->place[i]);
        controller_done(&supervisor->controller);
        free(supervisor->place);
}
