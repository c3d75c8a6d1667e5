/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch whose confidential objects find no room in memory (`secrets.memory`) stands still until it is
 * begun anew with an empty store. If it is isolated, nothing ends the operator for it, so it is begun anew
 * here, as a reload would do it: there may be fewer objects by then, or more memory. That costs a LIST, so
 * the pauses grow. The watch counts as failed until it is in sync, and is told of once.
 *
 * Owned and related kinds that have been in sync stay as they are: their owner goes on with what they show,
 * and would have to wait for all of it.
 */
#include <errno.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "supervisor/supervisor.h"

#define PAUSE_MAX (10 * USEC_PER_MINUTE)

static uint64_t pause_of(const struct watch *watch)
{
        uint64_t pause = watch->config->reconnect_max_usec;

        for (unsigned i = 0; i < place_of(watch)->room.tries && pause < PAUSE_MAX; i++)
                pause *= 2;
        return pause < PAUSE_MAX ? pause : PAUSE_MAX;
}

static int on_pause_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct watch *watch = userdata;

        place_of(watch)->room.timer = sd_event_source_disable_unref(place_of(watch)->room.timer);
        if (watch->leaving || supervisor_of(watch)->phase != PHASE_RUNNING)
                return 0;
        log_write(LOG_INFO, NULL, LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                  "watch %s begins anew: there may be room in memory for its objects now",
                  watch->config->name);
        place_of(watch)->room.begun = true;
        reload_watch(watch);
        return 0;
}

static void wait_for_room(struct watch *watch)
{
        if (place_of(watch)->room.timer || watch->leaving || (watch->config->owner && watch->synced))
                return;
        if (sd_event_add_time_relative(supervisor_of(watch)->event, &place_of(watch)->room.timer,
                                       CLOCK_BOOTTIME, pause_of(watch), USEC_PER_SEC, on_pause_over,
                                       watch) < 0)
                log_warning("watch %s cannot be begun anew by itself: no timer; a reload does it",
                            watch->config->name);
}

bool room_is_awaited(struct watch *watch, const struct message_degraded *degraded)
{
        if (degraded->exit_code == EXIT_CODE_IO &&
            (place_of(watch)->room.anew || degraded->health == (uint64_t)WATCH_FAILED))
                wait_for_room(watch);
        return place_of(watch)->room.anew;
}

int room_found(struct watch *watch)
{
        if (!place_of(watch)->room.anew)
                return 0;
        place_of(watch)->room.anew = false;
        place_of(watch)->room.tries = 0;
        place_of(watch)->heard.health = WATCH_HEALTHY;
        return health_review(watch);
}

int room_begin_next(const struct watch_place *former, enum watch_health health, const char *reason,
                    struct watch *watch)
{
        place_of(watch)->room = (struct room){.tries = former->room.tries + 1, .anew = true};
        watch->health = health;
        place_of(watch)->heard = former->heard;
        place_of(watch)->heard.reason = NULL;
        place_of(watch)->degraded_realtime = former->degraded_realtime;
        place_of(watch)->failures = former->failures;
        return text_replace(&place_of(watch)->heard.reason, reason) < 0 ||
                               text_replace(&place_of(watch)->degraded_reason, reason) < 0
                       ? -ENOMEM
                       : 0;
}
