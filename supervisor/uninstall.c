/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator goes for good: its finalizers come off everything, and nothing else runs. The ledger keeps
 * that, so a restart goes on with it, until somebody cancels it. Which objects carry a finalizer is what the
 * stores say: each watcher announces all of its objects again, and behind them the rows of the ledger are
 * gone through, for objects that no store has any more (they have left the selection). Each object gets a
 * row, which goes when it is released: so what is left is what the ledger counts, also after a restart.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "ipc/message-id.h"
#include "supervisor/json.h"
#include "supervisor/supervisor.h"

#define PAGE_SIZE 200
#define KEPT_AS   "" /* among the pauses of the ledger: no watch is called so */

const char uninstall_reason[] = "uninstall";

static bool concerns(const struct watch *watch)
{
        return watch->config->finalizer && !watch->config->owner;
}

static int push(struct watch *watch, const char *key, const char *uid, bool is_gone)
{
        const struct queue_item item = {.key = key,
                                        .uid = uid,
                                        /* What is gone is merely forgotten: behind its deletion nothing
                                         * would come to its turn. */
                                        .kind = is_gone ? CHANGE_DELETED : CHANGE_UPDATED,
                                        .urgent = true,
                                        .reason = uninstall_reason};
        int r = queue_push(watch->child->supervisor->queue, watch_number(watch), &item,
                           clock_boottime_usec());

        return r < 0 ? r : 0;
}

/* ---- what the stores have */

int uninstall_take(struct watch *watch, const struct record_change *change)
{
        int r;

        if (!concerns(watch) || change->kind != CHANGE_UPDATED || change->finalizer == FINALIZER_MISSING)
                return 0;
        r = ledger_owe(watch->child->supervisor->ledger, watch->config->name, change->key, change->uid);
        if (r < 0) {
                ledger_failed(watch->child->supervisor, r);
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
        watch->uninstall.asked = concerns(watch) && watch->child->state == CHILD_RUNNING;
        if (watch->uninstall.asked)
                (void)channel_send(watch->child->channel, MESSAGE_CREDIT,
                                   &(struct message_credit){.watch = watch->config->name, .again = true});
}

/* ---- what the ledger has */

struct page {
        struct watch *watch;
        char *key, *uid; /* of the last one */
};

static int take_row(const char *watch_name _unused_, const struct ledger_row *row, void *userdata)
{
        struct page *page = userdata;
        int r = text_replace(&page->key, row->key);

        if (r >= 0)
                r = text_replace(&page->uid, row->uid);
        return r < 0 ? r : push(page->watch, row->key, row->uid, row->deleting);
}

static void fail(struct supervisor *supervisor, int status)
{
        if (status == -EBADMSG || status == -EIO)
                ledger_failed(supervisor, status);
        else
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                                 "the operator cannot be uninstalled: %s", strerror(-status));
}

/* A page in a turn. */
static void walk(struct watch *watch)
{
        struct supervisor *supervisor = watch->child->supervisor;
        struct watch_uninstall *uninstall = &watch->uninstall;
        struct page page = {watch, strdup(uninstall->key ? uninstall->key : ""),
                            strdup(uninstall->uid ? uninstall->uid : "")};
        _cleanup_free_ char *key = strdup(page.key ? page.key : ""), *uid = strdup(page.uid ? page.uid : "");
        int r = page.key && page.uid && key && uid ? ledger_visit(supervisor->ledger, watch->config->name,
                                                                  key, uid, PAGE_SIZE, take_row, &page)
                                                   : -ENOMEM;

        free(uninstall->key);
        free(uninstall->uid);
        uninstall->key = page.key;
        uninstall->uid = page.uid;
        uninstall->walked = r == 0;
        if (r < 0)
                fail(supervisor, r);
}

static int on_idle(sd_event_source *source _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;

        turn_is(supervisor, "the uninstallation");
        FOREACH_WATCH(watch, supervisor) {
                if (!watch->uninstall.swept || watch->uninstall.walked || supervisor->phase > PHASE_RUNNING)
                        continue;
                walk(watch);
                turn_settle_soon(supervisor);
                (void)supervisor_when_idle(supervisor, &supervisor->uninstall_source, on_idle);
                return 0;
        }
        return 0;
}

/* The first one after a start knows nothing of what the watch does not select. */
void uninstall_swept(struct watch *watch, const struct message_swept *swept)
{
        struct supervisor *supervisor = watch->child->supervisor;

        if (!supervisor->uninstalling || !concerns(watch))
                return;
        if (!swept->again) {
                if (!watch->uninstall.asked)
                        ask_again(watch);
                return;
        }
        if (text_replace(&watch->uninstall.unseen, swept->unseen) < 0)
                fail(supervisor, -ENOMEM);
        if (watch->uninstall.swept)
                return;
        watch->uninstall.swept = true;
        if (supervisor_when_idle(supervisor, &supervisor->uninstall_source, on_idle) < 0)
                fail(supervisor, -ENOMEM);
}

/* ---- how far it is */

static bool is_searched(const struct watch *watch)
{
        return watch->uninstall.walked && watch->synced && watch->uninstall.unseen &&
               !watch->uninstall.unseen[0];
}

/* A kind that the server does not serve has no objects: where a definition goes, they have gone before it.
 */
static bool is_released(const struct watch *watch)
{
        return !concerns(watch) || watch->health == WATCH_ABSENT ||
               (is_searched(watch) &&
                ledger_count(watch->child->supervisor->ledger, watch->config->name) == 0);
}

bool uninstall_is_done(const struct supervisor *supervisor)
{
        FOREACH_WATCH(watch, supervisor)
                if (!is_released(watch))
                        return false;
        return supervisor->uninstalling;
}

void uninstall_review(struct supervisor *supervisor)
{
        if (!supervisor->uninstalling || supervisor->uninstall_told || !uninstall_is_done(supervisor))
                return;
        supervisor->uninstall_told = true;
        log_write(LOG_NOTICE, MESSAGE_ID_UNINSTALLED, NULL,
                  "no object carries a finalizer of operator %s any more: stop and remove the operator now. "
                  "It "
                  "runs nothing, also after a restart, until `reconciledctl uninstall --cancel`",
                  supervisor->config->operator_name);
}

void uninstall_write_watch(const struct watch *watch, struct text *json)
{
        if (!watch->child->supervisor->uninstalling || !concerns(watch))
                return;
        json_string(json, "unseen", watch->uninstall.unseen ? watch->uninstall.unseen : "");
        json_bool(json, "searched", watch->health == WATCH_ABSENT || is_searched(watch));
}

void uninstall_write_status(const struct supervisor *supervisor, struct text *json)
{
        json_number(json, "uninstallingSince",
                    supervisor->uninstalling ? supervisor->uninstall_realtime : 0);
        json_number(json, "uninstallingBy", supervisor->uninstall_by);
        json_bool(json, "uninstalled", uninstall_is_done(supervisor));
}

/* ---- the beginning, and the end */

static void begin(struct supervisor *supervisor, uint64_t since, uint64_t user, const char *how)
{
        char name[24];

        supervisor->uninstalling = true;
        supervisor->uninstall_told = false;
        supervisor->uninstall_realtime = since;
        supervisor->uninstall_by = user;
        FOREACH_WATCH(watch, supervisor)
                pause_apply(watch);
        snprintf(name, sizeof(name), "%llu", (unsigned long long)user);
        log_write(LOG_WARNING, MESSAGE_ID_UNINSTALLING, LOG_FIELDS({"RECONCILED_USER", name}),
                  "operator %s is %suninstalled (user %s): its finalizers are taken off everything, and "
                  "nothing "
                  "else runs any more, also after a restart, until `reconciledctl uninstall --cancel`",
                  supervisor->config->operator_name, how, name);
}

static int remember(const struct ledger_pause *pause, void *userdata)
{
        begin(userdata, pause->since_realtime, pause->user, "still being ");
        return 0;
}

int uninstall_load(struct supervisor *supervisor)
{
        return ledger_pause_see(supervisor->ledger, KEPT_AS, remember, supervisor);
}

int uninstall(struct supervisor *supervisor, uid_t uid)
{
        const struct ledger_pause kept = {clock_realtime_usec(), uid, (char[]){""}};
        int r = 0;

        if (!supervisor->uninstalling) {
                r = ledger_pause_put(supervisor->ledger, KEPT_AS, &kept);
                if (r >= 0)
                        r = ledger_commit(supervisor->ledger);
                if (r < 0)
                        return r;
                /* From now on nothing else runs, not even what waits in the queue: it would bring the
                 * finalizers back. */
                begin(supervisor, kept.since_realtime, uid, "being ");
                assign_recall(supervisor, "the operator is uninstalled");
        }
        FOREACH_WATCH(watch, supervisor) {
                ask_again(watch);
        }
        turn_settle_soon(supervisor);
        return 0;
}

int uninstall_cancel(struct supervisor *supervisor, uid_t uid)
{
        char user[24];
        int r = ledger_pause_remove(supervisor->ledger, KEPT_AS);

        if (r >= 0)
                r = ledger_commit(supervisor->ledger);
        if (r < 0)
                return r;
        snprintf(user, sizeof(user), "%u", (unsigned)uid);
        log_write(LOG_WARNING, MESSAGE_ID_UNINSTALL_CANCELLED, LOG_FIELDS({"RECONCILED_USER", user}),
                  "operator %s is not uninstalled after all (user %s): it begins anew, and puts its "
                  "finalizers "
                  "on again",
                  supervisor->config->operator_name, user);
        reload_by_restart(supervisor, "its uninstallation is cancelled");
        return 0;
}
