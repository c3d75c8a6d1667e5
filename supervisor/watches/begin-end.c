/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/watches/begin-end.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "controller/change/epoch.h"
#include "controller/change/unsure.h"
#include "controller/due/assigned.h"
#include "controller/order/by-hand.h"
#include "controller/run/assign.h"
#include "ipc/log.h"
#include "queue/queue-watch.h"
#include "supervisor/children/start.h"
#include "supervisor/folders/previous-folder.h"
#include "supervisor/folders/secrets.h"
#include "supervisor/handlers/access-state.h"
#include "supervisor/handlers/stamp.h"
#include "supervisor/supervisor.h"
#include "supervisor/watches/health.h"

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
        free(place->refused_namespaces);
        free(place->degraded_reason);
        free(place->heard.reason);
        free(place->heard_namespace);
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
        watch_place_of(watch)->store_folder = folder;
        watch_place_of(watch)->keeps_previous = previous_folder_begin(supervisor, config, folder);
        return watch_load(watch);
}

/* Begins the watch again, as at a start, with a new watcher, when its watcher is gone and none of its runs
 * is in flight. -EAGAIN: it takes another turn. */
static int watch_begin_again(struct watch *watch)
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
        watch_place_of(watch)->owed_source =
                sd_event_source_disable_unref(watch_place_of(watch)->owed_source);
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

/* ---- a watch that found no room in memory */

#define PAUSE_MAX (10 * USEC_PER_MINUTE)

static uint64_t pause_of(const struct watch *watch)
{
        uint64_t pause = watch->config->reconnect_max_usec;

        for (unsigned i = 0; i < watch_place_of(watch)->memory_retry.tries && pause < PAUSE_MAX; i++)
                pause *= 2;
        return pause < PAUSE_MAX ? pause : PAUSE_MAX;
}

static int on_memory_pause_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct watch *watch = userdata;
        struct memory_retry *retry = &watch_place_of(watch)->memory_retry;

        retry->timer = sd_event_source_disable_unref(retry->timer);
        if (supervisor_of(watch)->phase != PHASE_RUNNING)
                return 0;
        log_write(LOG_INFO, NULL, LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                  "watch %s restarts: there may be room in memory for its objects now", watch->config->name);
        retry->is_due = true;
        queue_close(watch->controller->queue, watch_number(watch));
        assign_recall(watch->controller, "its watch begins again");
        turn_settle_soon(supervisor_of(watch));
        return 0;
}

static void wait_for_room(struct watch *watch)
{
        struct memory_retry *retry = &watch_place_of(watch)->memory_retry;

        if (retry->timer || retry->is_due || (watch->config->owner && watch->synced))
                return;
        if (sd_event_add_time_relative(supervisor_of(watch)->event, &retry->timer, CLOCK_BOOTTIME,
                                       pause_of(watch), USEC_PER_SEC, on_memory_pause_over, watch) < 0)
                log_warning("watch %s cannot be restarted without a reload: there is no timer",
                            watch->config->name);
}

bool memory_retry_is_awaited(struct watch *watch, const struct message_degraded *degraded)
{
        bool is_try = watch_place_of(watch)->memory_retry.tries > 0;

        if (degraded->exit_code == EXIT_CODE_IO && (is_try || degraded->health == (uint64_t)WATCH_FAILED))
                wait_for_room(watch);
        return is_try;
}

int memory_retry_over(struct watch *watch)
{
        if (watch_place_of(watch)->memory_retry.tries == 0)
                return 0;
        watch_place_of(watch)->memory_retry.tries = 0;
        watch_place_of(watch)->heard.health = WATCH_HEALTHY;
        return health_review(watch);
}

/* The watcher's store is thrown away anyway, so the watcher need not end in order. */
static int retry_memory(struct watch *watch)
{
        struct memory_retry *retry = &watch_place_of(watch)->memory_retry;
        int r;

        if (assign_count(watch->controller, watch).running > 0)
                return 0;
        if (child_of(watch)->process.state != CHILD_GONE) {
                child_signal(child_of(watch), SIGKILL);
                return 0;
        }
        r = watch_begin_again(watch);
        if (r == -EAGAIN) {
                turn_settle_soon(supervisor_of(watch));
                return 0;
        }
        retry->is_due = false;
        retry->tries++;
        return r;
}

void memory_retry_continue(struct supervisor *supervisor)
{
        FOREACH_WATCH(watch, &supervisor->controller) {
                int r = watch_place_of(watch)->memory_retry.is_due && supervisor->phase == PHASE_RUNNING
                                ? retry_memory(watch)
                                : 0;

                if (r < 0)
                        supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                                         "watch %s cannot be restarted: %s", watch->config->name,
                                         strerror(-r));
        }
}
