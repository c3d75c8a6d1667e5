/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/health-verdict.h"

#include "base/duration.h"
#include "supervisor/children/child-slot.h"
#include "supervisor/phase.h"
#include "supervisor/supervisor.h"
#include "supervisor/watches/health.h"
#include "supervisor/watches/place.h"

static bool child_is_fresh(const struct child_slot *child, uint64_t now)
{
        uint64_t deadline = child->supervisor->config->heartbeat_deadline_usec;

        /* A watcher that is ended to begin again (watches/memory-retry.c) sends no heartbeat any more. */
        if (child->process.state == CHILD_STOPPING)
                return true;
        return child->process.state != CHILD_GONE && now - child->last_heartbeat <= deadline;
}

void health_get(const struct supervisor *supervisor, struct health *ret)
{
        uint64_t now = clock_monotonic_usec();

        *ret = (struct health){.live = supervisor->phase != PHASE_TEARDOWN,
                               .ready = supervisor->phase == PHASE_RUNNING};
        if (!ret->live)
                snprintf(ret->reason, sizeof(ret->reason), "%.200s", supervisor->end.cause);
        else if (!ret->ready)
                snprintf(ret->reason, sizeof(ret->reason), "%s",
                         supervisor->phase == PHASE_STARTING ? "starting"
                         : supervisor->reload.restarting     ? "reloading"
                                                             : "stopping");
        for (size_t i = 0; i < supervisor->child_count && ret->live && supervisor->phase <= PHASE_RUNNING;
             i++) {
                char who[128];

                if (child_is_fresh(&supervisor->child[i], now))
                        continue;
                child_describe(&supervisor->child[i], who, sizeof(who));
                snprintf(ret->reason, sizeof(ret->reason), "no heartbeat of the %s", who);
                ret->live = ret->ready = false;
        }
        FOREACH_WATCH(watch, &supervisor->controller) {
                if (!ret->ready || watch->health == WATCH_ABSENT ||
                    (watch->synced && watch->health != WATCH_FAILED))
                        continue;
                snprintf(ret->reason, sizeof(ret->reason), "watch %s is not in sync%s%.150s",
                         watch->config->name, watch_is_in_trouble(watch) ? ": " : "",
                         watch_is_in_trouble(watch) ? place_of(watch)->degraded_reason : "");
                ret->ready = false;
        }
}
