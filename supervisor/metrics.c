/* SPDX-License-Identifier: Apache-2.0 */
/* Counting, the verdict of health, and the way of both to the gateway. */
#include "supervisor/metrics.h"

#include <errno.h>
#include <string.h>

#include "supervisor/supervisor.h"

#define PAGE_SIZE_MAX ((size_t)128 * 1024)

void counters_set(struct child_counters *counters, const struct message_heartbeat *heartbeat)
{
        counters->count = 0;
        for (size_t i = 0; i < heartbeat->counter_count && counters->count < CHILD_COUNTERS; i++) {
                size_t n = counters->count++;

                snprintf(counters->counter[n].name, sizeof(counters->counter[n].name), "%s",
                         heartbeat->counter[i].name);
                counters->counter[n].value = heartbeat->counter[i].value;
        }
}

uint64_t counters_get(const struct child_counters *counters, const char *name)
{
        for (size_t i = 0; i < counters->count; i++)
                if (strcmp(counters->counter[i].name, name) == 0)
                        return counters->counter[i].value;
        return 0;
}

/* All together, so that a sum over children never falls when one takes another one's place. */
void counters_keep(struct child_counters *past, const struct child_counters *counters)
{
        for (size_t i = 0; i < counters->count; i++) {
                size_t n = 0;

                while (n < past->count && strcmp(past->counter[n].name, counters->counter[i].name) != 0)
                        n++;
                if (n == CHILD_COUNTERS)
                        return;
                if (n == past->count) {
                        past->counter[n] = counters->counter[i];
                        past->count++;
                } else {
                        past->counter[n].value += counters->counter[i].value;
                }
        }
}

uint64_t child_total(const struct child_slot *child, const char *counter)
{
        return counters_get(&child->past, counter) + counters_get(&child->counters, counter);
}

/* ---- health */

static bool child_is_fresh(const struct child_slot *child, uint64_t now)
{
        uint64_t deadline = child->supervisor->config->heartbeat_deadline_usec;

        /* What a reload has told to end says no more. */
        if (!child_is_used(child) || child->state == CHILD_STOPPING)
                return true;
        return child->state != CHILD_GONE && now - child->last_heartbeat <= deadline;
}

void health_get(const struct supervisor *supervisor, struct health *ret)
{
        uint64_t now = clock_monotonic_usec();

        *ret = (struct health){.live = supervisor->phase != PHASE_TEARDOWN,
                               .ready = supervisor->phase == PHASE_RUNNING};
        if (!ret->live)
                snprintf(ret->reason, sizeof(ret->reason), "%.200s", supervisor->cause);
        else if (!ret->ready)
                snprintf(ret->reason, sizeof(ret->reason), "%s",
                         supervisor->phase == PHASE_STARTING ? "starting" : "stopping");
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
                if (!ret->ready || watch->leaving || watch->health == WATCH_ABSENT ||
                    (watch->synced && watch->health != WATCH_FAILED))
                        continue;
                snprintf(ret->reason, sizeof(ret->reason), "watch %s is not in sync%s%.150s",
                         watch->config->name, watch_is_in_trouble(watch) ? ": " : "",
                         watch_is_in_trouble(watch) ? place_of(watch)->degraded_reason : "");
                ret->ready = false;
        }
}

/* ---- to the gateway */

static struct child_slot *gateway_of(const struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->child_count; i++)
                if (supervisor->child[i].kind == KIND_GATEWAY)
                        return &supervisor->child[i];
        return NULL;
}

uint64_t gateway_count(const struct supervisor *supervisor, const char *counter)
{
        const struct child_slot *gateway = gateway_of(supervisor);

        return gateway ? counters_get(&gateway->counters, counter) : 0;
}

void metrics_push(struct supervisor *supervisor)
{
        struct child_slot *gateway = gateway_of(supervisor);
        _cleanup_text_ struct text text = TEXT_EMPTY;
        struct health health;
        size_t offset = 0;

        /* What it has not read yet is old anyway; a gateway that reads no more misses its heartbeats. */
        if (!gateway || gateway->state != CHILD_RUNNING || channel_queued(gateway->channel) > 0 ||
            metrics_write(supervisor, &text) < 0)
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
                if (channel_send(gateway->channel, MESSAGE_METRICS, &message) < 0)
                        return;
                offset += message.body_size;
        } while (offset < text.size);
        supervisor->told_live = health.live;
        supervisor->told_ready = health.ready;
}

void metrics_push_change(struct supervisor *supervisor)
{
        struct health health;

        if (!gateway_of(supervisor))
                return;
        health_get(supervisor, &health);
        if (health.live != supervisor->told_live || health.ready != supervisor->told_ready)
                metrics_push(supervisor);
}
