/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/order/by-hand.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "controller/due/assigned.h"
#include "controller/due/due.h"
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
        if (row->next_reason ==
            RUN_SCHEDULED) /* a crash must not undo the order: it would wait for its time again */
                changed.next_reason = RUN_REQUESTED;
        if (order->kind == ORDER_LEAVE_QUARANTINE)
                changed.crashes = changed.crashed_realtime = changed.quarantined_until = 0;
        r = push_row(order->watch, &changed, item, 0);
        return r < 0 ? r : ledger_put(order->watch->controller->ledger, watch_name, &changed);
}

#define UIDS_MAX 100 /* of one key: its rows are adjacent */

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

/*
 * A watch that somebody has paused: none of its runs begins, across restarts, until it is resumed. The watcher
 * goes on, so that nothing is missed; changes wait in the queue as far as the credit goes, then in the
 * store. What becomes due by itself meanwhile stays in the ledger (due.c), and is looked for when the watch
 * is resumed.
 */
static void tell_paused(const struct watch *watch, const char *since)
{
        char user[24];

        snprintf(user, sizeof(user), "%llu", (unsigned long long)watch->paused_by);
        controller_log(
                watch->controller, LOG_WARNING, MESSAGE_ID_PAUSED,
                LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_USER", user},
                           {"RECONCILED_WHY", watch->pause_reason}),
                "watch %s is paused%s (user %s)%s%s; none of its objects run until `reconciledctl resume "
                "%s`; changes are kept",
                watch->config->name, since, user, watch->pause_reason[0] ? ": " : "", watch->pause_reason,
                watch->config->name);
}

/* ---- at the start */

static int remember_pause(const struct ledger_pause *pause, void *userdata)
{
        struct watch *watch = userdata;

        watch->paused_realtime = pause->since_realtime;
        watch->paused_by = pause->user;
        pause_apply(watch);
        return text_replace(&watch->pause_reason, pause->reason);
}

int pause_load(struct watch *watch)
{
        const struct controller *controller = watch->controller;
        int r = ledger_pause_see(controller->ledger, watch->config->name, remember_pause, watch);

        pause_apply(watch);
        if (r >= 0 && watch->paused_realtime > 0)
                tell_paused(watch, " since before this start");
        return r;
}

int pause_take(struct watch *watch, const struct ledger_pause *pause)
{
        struct ledger *ledger = watch->controller->ledger;
        int r = ledger_pause_put(ledger, watch->config->name, pause);

        if (r >= 0)
                r = remember_pause(pause, watch);
        if (r >= 0)
                tell_paused(watch, " since before this replica led");
        return r;
}

/* ---- by hand */

int pause_watch(struct watch *watch, const char *reason, uint64_t user)
{
        struct ledger *ledger = watch->controller->ledger;
        _cleanup_free_ char *clean = strdup(reason);
        struct ledger_pause pause = {watch->controller->now.realtime, user, clean};
        int r;

        if (watch->paused_realtime > 0)
                return 0;
        if (!clean)
                return -ENOMEM;
        utf8_clean(clean);
        r = ledger_pause_put(ledger, watch->config->name, &pause);
        if (r >= 0)
                r = ledger_commit(ledger);
        if (r >= 0)
                r = remember_pause(&pause, watch);
        if (r < 0)
                return r;
        assign_recall(watch->controller, "a watch is paused");
        tell_paused(watch, "");
        controller_settle_soon(watch->controller);
        return 1;
}

static void tell_resumed(const struct watch *watch, uint64_t user)
{
        uint64_t now = watch->controller->now.realtime, since = watch->paused_realtime;
        char duration[64], name[24];

        snprintf(name, sizeof(name), "%llu", (unsigned long long)user);
        duration_format(now > since ? (now - since) / USEC_PER_SEC * USEC_PER_SEC : 0, duration,
                        sizeof(duration));
        controller_log(watch->controller, LOG_NOTICE, MESSAGE_ID_RESUMED,
                       LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_USER", name}),
                       "watch %s is resumed (user %s), after %s; the objects that waited run now",
                       watch->config->name, name, duration);
}

int pause_resume(struct watch *watch, uint64_t user)
{
        struct controller *controller = watch->controller;
        int r;

        if (watch->paused_realtime == 0)
                return 0;
        r = ledger_pause_remove(controller->ledger, watch->config->name);
        if (r >= 0)
                r = ledger_commit(controller->ledger);
        if (r < 0)
                return r;
        tell_resumed(watch, user);
        watch->paused_realtime = 0;
        pause_apply(watch);
        ledger_due_again(controller->ledger);
        due_arm(controller);
        controller_settle_soon(controller);
        return 1;
}
