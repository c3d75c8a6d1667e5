/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/order/by-hand.h"

#include <errno.h>
#include <string.h>

#include "controller/clock.h"
#include "controller/due/push.h"
#include "controller/effects.h"
#include "ipc/message-id.h"

enum order_kind { ORDER_RUN, ORDER_LEAVE_QUARANTINE, ORDER_DROP_FINALIZER };

struct order {
        struct watch *watch;
        const char *key;
        enum order_kind kind;
        size_t count;
};

/* Starts no handler, so it need not run alone, whatever the operator has crashed over. */
static int drop_finalizer(struct watch *watch, const struct ledger_row *row)
{
        const struct queue_item item = {.key = row->key,
                                        .uid = row->uid,
                                        .kind = CHANGE_UPDATED,
                                        .urgent = true,
                                        .reason = RUN_RELEASE};

        return push_item(watch, item, 0);
}

static int take_row_by_hand(const char *watch_name, const struct ledger_row *row, void *userdata)
{
        struct order *order = userdata;
        struct ledger_row changed = *row;
        const struct queue_item item = {.urgent = order->kind == ORDER_RUN, .reason = RUN_REQUESTED};
        int r;

        if (strcmp(row->key, order->key) != 0 ||
            (order->kind == ORDER_LEAVE_QUARANTINE && row->quarantined_until == 0))
                return 0;
        order->count++;
        if (order->kind == ORDER_DROP_FINALIZER)
                return drop_finalizer(order->watch, row);
        changed.next_realtime = ledger_time(order->watch->controller);
        changed.permanent = false;
        if (order->kind == ORDER_LEAVE_QUARANTINE)
                changed.crashes = changed.crashed_realtime = changed.quarantined_until = 0;
        r = push_row(order->watch, &changed, item, 0);
        return r < 0 ? r : ledger_put(order->watch->controller->ledger, watch_name, &changed);
}

#define UIDS_MAX 100 /* of one key: its rows stand together */

static int order_key(struct watch *watch, const char *key, enum order_kind kind)
{
        struct order order = {watch, key, kind, 0};
        int r = ledger_visit(watch->controller->ledger, watch->config->name, key, "", UIDS_MAX,
                             take_row_by_hand, &order);

        controller_settle_soon(watch->controller);
        return r < 0 ? r : order.count > 0 ? 0 : -ENOENT;
}

int run_now(struct watch *watch, const char *key, bool release)
{
        int r = order_key(watch, key, release ? ORDER_LEAVE_QUARANTINE : ORDER_RUN);

        if (r >= 0)
                controller_log(
                        watch->controller, LOG_NOTICE, release ? MESSAGE_ID_RELEASED : NULL,
                        LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", key}),
                        "%s of watch %s %s", key, watch->config->name,
                        release ? "was released from quarantine by hand, and runs as soon as nothing else "
                                  "does"
                                : "runs now, as requested by hand");
        return r;
}

int release_finalizer(struct watch *watch, const char *key, const char *why, uint64_t user)
{
        char name[24];
        int r = order_key(watch, key, ORDER_DROP_FINALIZER);

        snprintf(name, sizeof(name), "%llu", (unsigned long long)user);
        if (r >= 0)
                controller_log(
                        watch->controller, LOG_WARNING, MESSAGE_ID_FINALIZER_RELEASED,
                        LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", key},
                                   {"RECONCILED_USER", name}, {"RECONCILED_WHY", why}),
                        "our finalizer is taken off %s of watch %s by hand (user %s): %s; what its handler "
                        "created may be left over",
                        key, watch->config->name, name, why);
        return r;
}
