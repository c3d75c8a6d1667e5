/* SPDX-License-Identifier: Apache-2.0 */
/* See memory-retry.h. */
#include "supervisor/watches/memory-retry.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "ipc/log.h"
#include "supervisor/phase.h"
#include "supervisor/supervisor.h"
#include "supervisor/watches/begin-end.h"
#include "supervisor/watches/health.h"
#include "supervisor/watches/place.h"

#define PAUSE_MAX (10 * USEC_PER_MINUTE)

static uint64_t pause_of(const struct watch *watch)
{
        uint64_t pause = watch->config->reconnect_max_usec;

        for (unsigned i = 0; i < place_of(watch)->memory_retry.tries && pause < PAUSE_MAX; i++)
                pause *= 2;
        return pause < PAUSE_MAX ? pause : PAUSE_MAX;
}

static int on_pause_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct watch *watch = userdata;

        place_of(watch)->memory_retry.timer =
                sd_event_source_disable_unref(place_of(watch)->memory_retry.timer);
        if (watch->leaving || supervisor_of(watch)->phase != PHASE_RUNNING)
                return 0;
        log_write(LOG_INFO, NULL, LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                  "watch %s restarts: there may be room in memory for its objects now", watch->config->name);
        place_of(watch)->memory_retry.begun = true;
        watch_begin_anew(watch);
        return 0;
}

static void wait_for_room(struct watch *watch)
{
        if (place_of(watch)->memory_retry.timer || watch->leaving || (watch->config->owner && watch->synced))
                return;
        if (sd_event_add_time_relative(supervisor_of(watch)->event, &place_of(watch)->memory_retry.timer,
                                       CLOCK_BOOTTIME, pause_of(watch), USEC_PER_SEC, on_pause_over,
                                       watch) < 0)
                log_warning("watch %s cannot be restarted without a reload: there is no timer",
                            watch->config->name);
}

bool memory_retry_is_awaited(struct watch *watch, const struct message_degraded *degraded)
{
        if (degraded->exit_code == EXIT_CODE_IO &&
            (place_of(watch)->memory_retry.anew || degraded->health == (uint64_t)WATCH_FAILED))
                wait_for_room(watch);
        return place_of(watch)->memory_retry.anew;
}

int memory_retry_over(struct watch *watch)
{
        if (!place_of(watch)->memory_retry.anew)
                return 0;
        place_of(watch)->memory_retry.anew = false;
        place_of(watch)->memory_retry.tries = 0;
        place_of(watch)->heard.health = WATCH_HEALTHY;
        return health_review(watch);
}

int memory_retry_carry_over(const struct watch_place *former, enum watch_health health, const char *reason,
                            struct watch *watch)
{
        place_of(watch)->memory_retry =
                (struct memory_retry){.tries = former->memory_retry.tries + 1, .anew = true};
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
