/* SPDX-License-Identifier: Apache-2.0 */
/* What systemd is told: READY, STATUS in words that an operator likes, STOPPING. */
#include <string.h>
#include <systemd/sd-daemon.h>

#include "supervisor/supervisor.h"

static const struct watch *first_degraded(const struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->watch_count; i++)
                if (supervisor->watch[i].degraded)
                        return &supervisor->watch[i];
        return NULL;
}

static void describe(const struct supervisor *supervisor, char *buffer, size_t size)
{
        struct queue_counts counts = queue_count_all(supervisor->queue);
        const struct watch *degraded = first_degraded(supervisor);
        size_t synced = 0, used;

        for (size_t i = 0; i < supervisor->watch_count; i++)
                synced += supervisor->watch[i].synced;
        if (synced == supervisor->watch_count)
                used = (size_t)snprintf(buffer, size, "%zu watch%s in sync", synced,
                                        synced == 1 ? "" : "es");
        else
                used = (size_t)snprintf(buffer, size, "%zu of %zu watches in sync", synced,
                                        supervisor->watch_count);
        if (used < size)
                used += (size_t)snprintf(buffer + used, size - used,
                                         ", %zu running, %zu queued, %zu waiting", counts.running,
                                         counts.queued, counts.delayed);
        if (degraded && used < size)
                snprintf(buffer + used, size - used, "; watch %s degraded: %s", degraded->config->name,
                         degraded->degraded_reason ? degraded->degraded_reason : "");
}

void notify_status(struct supervisor *supervisor)
{
        char text[sizeof(supervisor->status_text)];

        if (supervisor->phase > PHASE_RUNNING)
                return;
        describe(supervisor, text, sizeof(text));
        if (strcmp(text, supervisor->status_text) == 0)
                return;
        memcpy(supervisor->status_text, text, sizeof(text));
        sd_notifyf(0, "STATUS=%s", text);
}

void notify_ready(struct supervisor *supervisor)
{
        char text[sizeof(supervisor->status_text)];

        describe(supervisor, text, sizeof(text));
        sd_notifyf(0, "READY=1\nSTATUS=%s", text);
        log_debug("all children are ready");
}

void notify_stopping(struct supervisor *supervisor)
{
        struct queue_counts counts = queue_count_all(supervisor->queue);

        sd_notifyf(0, "STOPPING=1\nSTATUS=stopping: %zu running", counts.running);
}
