/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/due/push.h"

#include <string.h>

#include "object/identity.h"
#include "queue/queue-watch.h"

int push_item(struct watch *watch, struct queue_item item, uint64_t delay_usec)
{
        uint64_t now = watch->controller->now.boottime;
        int r;

        if (delay_usec > 0)
                item.not_before = now + delay_usec;
        r = queue_push(watch->controller->queue, watch_number(watch), &item, now);
        watch->metrics.adds += r == QUEUE_ADDED;
        return r < 0 ? r : 0;
}

int push_row(struct watch *watch, const struct ledger_row *row, struct queue_item item, uint64_t delay_usec)
{
        item.key = row->key;
        item.uid = row->uid;
        item.kind = ledger_row_kind(row);
        item.suspect = ledger_row_is_suspect(row);
        return push_item(watch, item, delay_usec);
}

int change_push(struct watch *watch, const struct record_change *change, enum change_kind kind,
                const struct ledger_row *row, enum run_reason reason, uint64_t delay_usec)
{
        const struct queue_item item = {
                .key = change->key,
                .uid = change->uid,
                .kind = kind,
                .priority = change->first && kind == CHANGE_UPDATED ? QUEUE_LOW : QUEUE_NORMAL,
                .fingerprint = change->fingerprint,
                .version = resource_version_number(change->resource_version),
                .sequence = change->sequence,
                .suspect = row && ledger_row_is_suspect(row),
                .nudge = kind == CHANGE_UPDATED && change->fingerprint == 0,
                .on_record = reason == RUN_CHILD_CHANGED,
                .reason = reason,
        };

        return push_item(watch, item, delay_usec);
}

const char *owned_awaited(const struct watch *parent)
{
        const struct controller *controller = parent->controller;
        const struct config *config = controller->config;

        FOREACH_ARRAY(other, config->watch, config->watch_count) {
                const struct watch *watch;

                if (!other->owner || strcmp(other->owner, parent->config->name) != 0)
                        continue;
                watch = watch_find(controller, other->name);
                if (!watch || (!watch->synced && watch->health != WATCH_ABSENT))
                        return other->name;
        }
        return NULL;
}

const char *startup_pending(const struct controller *controller)
{
        const struct config *config = controller->config;

        if (controller->startup_over)
                return NULL;
        FOREACH_ARRAY(watch, config->watch, config->watch_count)
                if (watch->own == OWN_STARTUP)
                        return watch->name;
        return NULL;
}

const char *startup_awaited(const struct watch *watch)
{
        if (watch->config->own == OWN_STARTUP || watch->config->owner)
                return NULL;
        return startup_pending(watch->controller);
}

void pause_apply(struct watch *watch)
{
        queue_pause(watch->controller->queue, watch_number(watch),
                    watch->paused_realtime > 0 || owned_awaited(watch) || startup_awaited(watch) ||
                            watch->awaits_token || watch->controller->uninstall.active);
}

void owned_known(struct watch *watch)
{
        struct watch *parent =
                watch->config->owner ? watch_find(watch->controller, watch->config->owner) : NULL;

        if (parent)
                pause_apply(parent);
}
