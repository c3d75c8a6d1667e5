/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/tell-gateway.h"

#include "base/duration.h"
#include "base/text.h"
#include "controller/due/push.h"
#include "supervisor/control/metrics-text.h"
#include "supervisor/supervisor.h"
#include "supervisor/watches/health.h"

static bool child_is_fresh(const struct child_slot *child, uint64_t now)
{
        uint64_t deadline = child->supervisor->config->heartbeat_deadline_usec;

        /* A watcher that is ended to begin again (watches/begin-end.c) sends no heartbeat any more. */
        if (child->process.state == CHILD_STOPPING)
                return true;
        return child->process.state != CHILD_GONE && now - child->last_heartbeat <= deadline;
}

static void see_startup(const struct controller *controller, struct health *health)
{
        const char *error = controller->startup_error;

        if (!health->ready || !startup_pending(controller))
                return;
        snprintf(health->reason, sizeof(health->reason),
                 "the handler of `startup` has not succeeded, and all others wait for it%s%.150s",
                 error ? ": " : "", error ? error : "");
        health->ready = false;
}

static bool can_take_over(const struct supervisor_lead *lead)
{
        return lead->state == LEAD_FOLLOWING && !lead->is_refused;
}

void health_get(const struct supervisor *supervisor, struct health *ret)
{
        const struct supervisor_lead *lead = &supervisor->lead;
        uint64_t now = clock_monotonic_usec();

        *ret = (struct health){
                .live = supervisor->phase != PHASE_TEARDOWN,
                .ready = supervisor->phase == PHASE_RUNNING ||
                         (supervisor->phase == PHASE_FOLLOWING && can_take_over(&supervisor->lead))};
        if (!ret->live)
                snprintf(ret->reason, sizeof(ret->reason), "%.200s", supervisor->end.cause);
        else if (!ret->ready && supervisor->phase == PHASE_FOLLOWING)
                snprintf(ret->reason, sizeof(ret->reason), "%.200s",
                         lead->trouble[0] ? lead->trouble : "the leader record is not known yet");
        else if (!ret->ready)
                snprintf(ret->reason, sizeof(ret->reason), "%s",
                         supervisor->phase <= PHASE_STARTING ? "starting"
                         : supervisor->reload.restarting     ? "reloading"
                                                             : "stopping");
        for (size_t i = 0; i < supervisor->child_count && ret->live && supervisor->phase <= PHASE_RUNNING;
             i++) {
                char who[128];

                if (!lead_is_due(&supervisor->child[i]) || child_is_fresh(&supervisor->child[i], now))
                        continue;
                child_describe(&supervisor->child[i], who, sizeof(who));
                snprintf(ret->reason, sizeof(ret->reason), "no heartbeat of the %s", who);
                ret->live = ret->ready = false;
        }
        FOREACH_WATCH(watch, &supervisor->controller) {
                if (ret->ready && watch->other_cluster) {
                        snprintf(ret->reason, sizeof(ret->reason),
                                 "watch %s: the API server is another cluster than the one that the state "
                                 "folder belongs to",
                                 watch->config->name);
                        ret->ready = false;
                }
                if (!ret->ready || supervisor->phase == PHASE_FOLLOWING || watch->health == WATCH_ABSENT ||
                    (watch->synced && watch->health != WATCH_FAILED))
                        continue;
                snprintf(ret->reason, sizeof(ret->reason), "watch %s is not in sync%s%.150s",
                         watch->config->name, watch_is_in_trouble(watch) ? ": " : "",
                         watch_is_in_trouble(watch) ? watch_place_of(watch)->degraded_reason : "");
                ret->ready = false;
        }
        if (supervisor->phase != PHASE_FOLLOWING)
                see_startup(&supervisor->controller, ret);
}

#define PAGE_SIZE_MAX ((size_t)128 * 1024)

void gateway_tell(struct supervisor *supervisor)
{
        struct child_slot *gateway = child_gateway(supervisor);
        _cleanup_text_ struct text text = TEXT_EMPTY;
        struct health health;
        size_t offset = 0;

        /* An unread document is old anyway; a gateway that reads no more misses its heartbeats. */
        if (supervisor->phase == PHASE_TEARDOWN || !gateway || gateway->process.state != CHILD_RUNNING ||
            channel_queued(gateway->process.channel) > 0 || metrics_write(supervisor, &text) < 0)
                return;
        health_get(supervisor, &health);
        do {
                size_t left = text.size - offset;
                struct message_metrics message = {
                        .live = health.live,
                        .ready = health.ready,
                        .reason = health.reason,
                        .body = text.data + offset,
                        .body_size = left < PAGE_SIZE_MAX ? left : PAGE_SIZE_MAX,
                        .last = left <= PAGE_SIZE_MAX,
                };

                utf8_clean(health.reason);
                if (channel_send(gateway->process.channel, MESSAGE_METRICS, &message) < 0)
                        return;
                offset += message.body_size;
        } while (offset < text.size);
        supervisor->gateway.told_live = health.live;
        supervisor->gateway.told_ready = health.ready;
}

void gateway_tell_change(struct supervisor *supervisor)
{
        struct health health;

        if (!child_gateway(supervisor))
                return;
        health_get(supervisor, &health);
        if (health.live != supervisor->gateway.told_live || health.ready != supervisor->gateway.told_ready)
                gateway_tell(supervisor);
}
