/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator goes for good: its finalizers come off everything, and nothing else runs. The ledger keeps
 * that, so a restart goes on with it, until somebody cancels it. Which objects carry a finalizer is what the
 * stores say: each watcher announces all of its objects again, and after them the rows of the ledger are
 * gone through, for objects that no store has any more (they have left the selection). Each object gets a
 * row, which goes when it is released: so what is left is what the ledger counts, also after a restart.
 */
#include <errno.h>
#include <string.h>

#include "base/exit-code.h"
#include "controller/due/assigned.h"
#include "controller/due/push.h"
#include "controller/effects.h"
#include "controller/order/uninstall.h"
#include "ipc/message-id.h"

#define KEPT_AS "" /* among the pauses of the ledger: no watch is called so */

bool uninstall_concerns(const struct watch *watch)
{
        return watch->config->finalizer && !watch->config->owner;
}

static int push(struct watch *watch, const char *key, const char *uid, bool is_gone)
{
        const struct queue_item item = {.key = key,
                                        .uid = uid,
                                        /* What is gone is only forgotten: after its deletion nothing
                                         * would come to its turn. */
                                        .kind = is_gone ? CHANGE_DELETED : CHANGE_UPDATED,
                                        .urgent = true,
                                        .reason = RUN_UNINSTALL};

        return push_item(watch, item, 0);
}

/* ---- what the stores have */

int uninstall_take(struct watch *watch, const struct record_change *change)
{
        int r;

        if (!uninstall_concerns(watch) || change->kind != CHANGE_UPDATED ||
            change->finalizer == FINALIZER_MISSING)
                return 0;
        r = ledger_owe(watch->controller->ledger, watch->config->name, change->key, change->uid);
        if (r < 0) {
                ledger_failed(watch->controller, r);
                return 0;
        }
        return push(watch, change->key, change->uid, false);
}

void uninstall_watch_done(struct watch *watch)
{
        free(watch->uninstall.key);
        free(watch->uninstall.uid);
        free(watch->uninstall.unseen);
        watch->uninstall = (struct watch_uninstall){0};
}

static void ask_again(struct watch *watch)
{
        uninstall_watch_done(watch);
        watch->uninstall.asked = uninstall_concerns(watch) && watch->is_up;
        if (watch->uninstall.asked)
                watch->controller->effects->credit(watch->controller->userdata, watch, 0, true);
}

/* ---- what the ledger has */

struct page {
        struct watch *watch;
        char *key, *uid; /* of the last one */
};

static int take_uninstall_row(const char *watch_name _unused_, const struct ledger_row *row, void *userdata)
{
        struct page *page = userdata;
        int r = text_replace(&page->key, row->key);

        if (r >= 0)
                r = text_replace(&page->uid, row->uid);
        return r < 0 ? r : push(page->watch, row->key, row->uid, row->deleting);
}

static void uninstall_fail(struct controller *controller, int status)
{
        if (status == -EBADMSG || status == -EIO)
                ledger_failed(controller, status);
        else
                controller_fatal(controller, EXIT_CODE_SOFTWARE, NULL,
                                 "the operator cannot be uninstalled: %s", strerror(-status));
}

/* Takes a page in a turn. */
static void uninstall_walk_watch(struct watch *watch)
{
        struct controller *controller = watch->controller;
        struct watch_uninstall *uninstall = &watch->uninstall;
        struct page page = {watch, strdup(uninstall->key ? uninstall->key : ""),
                            strdup(uninstall->uid ? uninstall->uid : "")};
        _cleanup_free_ char *key = strdup(page.key ? page.key : ""), *uid = strdup(page.uid ? page.uid : "");
        int r = page.key && page.uid && key && uid
                        ? ledger_visit(controller->ledger, watch->config->name, key, uid, PAGE_UNINSTALL,
                                       take_uninstall_row, &page)
                        : -ENOMEM;

        free(uninstall->key);
        free(uninstall->uid);
        uninstall->key = page.key;
        uninstall->uid = page.uid;
        uninstall->walked = r == 0;
        if (r < 0)
                uninstall_fail(controller, r);
}

bool uninstall_is_pending(struct controller *controller)
{
        FOREACH_WATCH(watch, controller)
                if (watch->uninstall.swept && !watch->uninstall.walked)
                        return true;
        return false;
}

void uninstall_walk(struct controller *controller)
{
        FOREACH_WATCH(watch, controller) {
                if (!watch->uninstall.swept || watch->uninstall.walked)
                        continue;
                uninstall_walk_watch(watch);
                controller_settle_soon(controller);
                return;
        }
}

/* The first SWEPT after a start covers nothing that the watch does not select. */
int uninstall_swept(struct watch *watch, const struct message_swept *swept)
{
        if (!watch->controller->uninstall.active || !uninstall_concerns(watch))
                return 0;
        if (!swept->again) {
                if (!watch->uninstall.asked)
                        ask_again(watch);
                return 0;
        }
        watch->uninstall.swept = true;
        return text_replace(&watch->uninstall.unseen, swept->unseen);
}

/* ---- how far it is */

bool uninstall_is_searched(const struct watch *watch)
{
        return watch->uninstall.walked && watch->synced && watch->uninstall.unseen &&
               !watch->uninstall.unseen[0];
}

/* A kind that the server does not serve has no objects: where a definition goes, they have gone before it.
 */
static bool is_released(const struct watch *watch)
{
        return !uninstall_concerns(watch) || watch->health == WATCH_ABSENT ||
               (uninstall_is_searched(watch) &&
                ledger_count(watch->controller->ledger, watch->config->name) == 0);
}

bool uninstall_is_done(const struct controller *controller)
{
        FOREACH_WATCH(watch, controller)
                if (!is_released(watch))
                        return false;
        return controller->uninstall.active;
}

void uninstall_review(struct controller *controller)
{
        if (!controller->uninstall.active || controller->uninstall.told || !uninstall_is_done(controller))
                return;
        controller->uninstall.told = true;
        controller_log(
                controller, LOG_NOTICE, MESSAGE_ID_UNINSTALLED, NULL,
                "no object carries a finalizer of operator %s any more: stop and remove the operator now. "
                "It runs nothing, even after a restart, until `reconciledctl uninstall --cancel`",
                controller->config->operator_name);
}

/* ---- the beginning, and the end */

static void uninstall_begin(struct controller *controller, uint64_t since, uint64_t user, const char *how)
{
        char name[24];

        controller->uninstall.active = true;
        controller->uninstall.told = false;
        controller->uninstall.realtime = since;
        controller->uninstall.by = user;
        FOREACH_WATCH(watch, controller)
                pause_apply(watch);
        snprintf(name, sizeof(name), "%llu", (unsigned long long)user);
        controller_log(
                controller, LOG_WARNING, MESSAGE_ID_UNINSTALLING, LOG_FIELDS({"RECONCILED_USER", name}),
                "operator %s is %suninstalled (user %s): its finalizers are taken off all objects, and "
                "nothing else runs, even after a restart, until `reconciledctl uninstall --cancel`",
                controller->config->operator_name, how, name);
}

static int remember_uninstall(const struct ledger_pause *pause, void *userdata)
{
        uninstall_begin(userdata, pause->since_realtime, pause->user, "still being ");
        return 0;
}

int uninstall_load(struct controller *controller)
{
        return ledger_pause_see(controller->ledger, KEPT_AS, remember_uninstall, controller);
}

int uninstall(struct controller *controller, uint64_t user)
{
        const struct ledger_pause kept = {controller->now.realtime, user, (char[]){""}};
        int r = 0;

        if (!controller->uninstall.active) {
                r = ledger_pause_put(controller->ledger, KEPT_AS, &kept);
                if (r >= 0)
                        r = ledger_commit(controller->ledger);
                if (r < 0)
                        return r;
                /* From now on nothing else runs, not even what waits in the queue: it would bring the
                 * finalizers back. */
                uninstall_begin(controller, kept.since_realtime, user, "being ");
                assign_recall(controller, "the operator is uninstalled");
        }
        FOREACH_WATCH(watch, controller) {
                ask_again(watch);
        }
        controller_settle_soon(controller);
        return 0;
}

int uninstall_cancel(struct controller *controller, uint64_t user)
{
        char name[24];
        int r = ledger_pause_remove(controller->ledger, KEPT_AS);

        if (r >= 0)
                r = ledger_commit(controller->ledger);
        if (r < 0)
                return r;
        snprintf(name, sizeof(name), "%llu", (unsigned long long)user);
        controller_log(
                controller, LOG_WARNING, MESSAGE_ID_UNINSTALL_CANCELLED,
                LOG_FIELDS({"RECONCILED_USER", name}),
                "the uninstallation of operator %s was cancelled (user %s): the operator starts again and "
                "puts its finalizers on again",
                controller->config->operator_name, name);
        return 0;
}
