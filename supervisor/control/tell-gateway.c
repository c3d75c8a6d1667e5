/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/tell-gateway.h"

#include "base/text.h"
#include "supervisor/children/child-slot.h"
#include "supervisor/control/health-verdict.h"
#include "supervisor/control/metrics-text.h"
#include "supervisor/supervisor.h"

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
