/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/watcher-messages.h"

#include <errno.h>

#include "base/text.h"
#include "controller/change/change.h"
#include "controller/due/may-run.h"
#include "controller/due/retry.h"
#include "supervisor/control/control.h"
#include "supervisor/supervisor.h"
#include "supervisor/turn.h"
#include "supervisor/watches/health.h"
#include "supervisor/watches/memory-retry.h"
#include "supervisor/watches/place.h"

static int health_heard(struct watch *watch, const struct message *message)
{
        int r;

        if (message->type == MESSAGE_DEGRADED) {
                if (message->degraded.health == WATCH_HEALTHY)
                        return -EPROTO;
                if (text_replace(&place_of(watch)->heard.reason, message->degraded.reason) < 0)
                        return -ENOMEM;
                if (memory_retry_is_awaited(watch, &message->degraded))
                        return text_replace(&place_of(watch)->degraded_reason, message->degraded.reason);
                place_of(watch)->heard.health = message->degraded.health;
                place_of(watch)->heard.since_realtime = message->degraded.since_realtime;
                place_of(watch)->heard.failures = message->degraded.failures;
        } else {
                if (place_of(watch)->memory_retry.tries > 0)
                        return 0;
                place_of(watch)->heard.health = WATCH_HEALTHY;
                recover(watch);
        }
        r = health_review(watch);
        owned_known(watch); /* what is not served is awaited no longer */
        turn_settle_soon(supervisor_of(watch));
        return r;
}

static int watch_synced(struct watch *watch, const struct message_synced *synced)
{
        int r = change_synced(watch, synced);

        return r < 0 ? r : memory_retry_over(watch);
}

int watcher_message(struct watch *watch, const struct message *message)
{
        switch (message->type) {
        case MESSAGE_KEYS:
                return change_keys(watch, &message->keys);
        case MESSAGE_SYNCED:
                return watch_synced(watch, &message->synced);
        case MESSAGE_CHECKED:
                return change_checked(watch, &message->checked);
        case MESSAGE_SWEPT:
                return change_swept(watch, &message->swept);
        case MESSAGE_POSITION:
                return control_take_position(watch, &message->position);
        case MESSAGE_DEGRADED:
        case MESSAGE_RECOVERED:
                return health_heard(watch, message);
        default:
                return -EPROTO;
        }
}
