/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/change/change.h"
#include "controller/due/assigned.h"
#include "controller/due/next-attempt.h"

#include <errno.h>
#include <string.h>

#include "controller/change/decision.h"
#include "controller/change/epoch.h"
#include "controller/change/finalizer-only.h"
#include "controller/change/handled.h"
#include "controller/change/owed.h"
#include "controller/change/owned.h"
#include "controller/change/related-changes.h"
#include "controller/change/unsure.h"
#include "controller/controller-watch.h"
#include "controller/due/due.h"
#include "controller/due/push.h"
#include "controller/due/retry.h"
#include "controller/due/schedule.h"
#include "controller/due/watch-refusal.h"
#include "controller/effects.h"
#include "controller/order/uninstall.h"
#include "ipc/message-id.h"
#include "ipc/run-reason.h"
#include "queue/look.h"
#include "queue/queue-watch.h"

static bool is_being_handled(const struct watch *watch, const struct record_change *change)
{
        enum run_reason reason =
                queue_running(watch->controller->queue, watch_number(watch), change->key, change->uid);

        return reason != RUN_REASON_NONE && !run_is_without_handler(reason);
}

/* false: the ledger has failed, and the operator ends for it. */
static bool keep_row(struct watch *watch, const struct ledger_row *row)
{
        struct controller *controller = watch->controller;
        int r = ledger_put(controller->ledger, watch->config->name, row);

        if (r < 0)
                ledger_failed(controller, r);
        return r >= 0;
}

/* ---- carrying a decision out: each gets the row, NULL if there is none */

static int nothing(struct watch *watch _unused_, const struct record_change *change _unused_,
                   const struct ledger_row *row _unused_)
{
        return 0;
}

/* While it is unknown what was in flight (unsure.c), the row may name content that is older than what was
 * shown last. The object may be changed back to that before this runs, and we may be restarted by then. */
static bool forget_handled(struct watch *watch, const struct ledger_row *row)
{
        struct ledger_row unknown = *row;

        if (!watch->unsure || (row->fingerprint == 0 && !row->permanent))
                return true;
        ledger_row_unknown(&unknown);
        return keep_row(watch, &unknown);
}

static int enqueue_change(struct watch *watch, const struct record_change *change,
                          const struct ledger_row *row)
{
        if (!row)
                return change_push(watch, change, CHANGE_UPDATED, NULL, RUN_ADDED,
                                   owed_delay(watch, change->key));
        return change_push(watch, change, CHANGE_UPDATED, row, RUN_ADDED, 0);
}

static int run_object(struct watch *watch, const struct record_change *change, const struct ledger_row *row)
{
        return is_being_handled(watch, change) || forget_handled(watch, row)
                       ? change_push(watch, change, CHANGE_UPDATED, row, RUN_CHANGED, 0)
                       : 0;
}

/* `onStart: all`: once a start of the operator; a relist, or a reload, shows the same objects again. */
static bool is_due_at_start(const struct watch *watch, const struct record_change *change,
                            const struct ledger_row *row)
{
        return watch->config->on_start == ON_START_ALL && change->first && !row->permanent &&
               row->handled_realtime < watch->controller->started;
}

static int rest(struct watch *watch, const struct record_change *change, const struct ledger_row *row)
{
        struct ledger_row unknown;
        int r;

        if (is_due_at_start(watch, change, row))
                return change_push(watch, change, CHANGE_UPDATED, row, RUN_START, 0);
        r = watch->unsure ? unsure_is_same(watch, change, row) : 1;
        if (r < 0)
                ledger_failed(watch->controller, r);
        if (r != 0)
                return 0;
        unknown = *row;
        ledger_row_unknown(&unknown);
        return keep_row(watch, &unknown)
                       ? change_push(watch, change, CHANGE_UPDATED, &unknown, RUN_CHANGED, 0)
                       : 0;
}

/* Long backoffs stay in the ledger, and come back from there. */
static int back_off(struct watch *watch, const struct record_change *change, const struct ledger_row *row)
{
        uint64_t now = ledger_time(watch->controller);
        uint64_t delay = row->next_realtime > now ? row->next_realtime - now : 0;
        enum run_reason reason = row->next_reason == RUN_HANDLER_CHANGED ? RUN_HANDLER_CHANGED : RUN_RETRY;

        return delay > DELAY_IN_QUEUE_USEC ? 0
                                           : change_push(watch, change, change->kind, row, reason, delay);
}

/* The operator died in a run of this object that was not for a change (the object was settling, or was due).
 * The object's present content is no reason to run before its time. */
static int adopt_crash(struct watch *watch, const struct record_change *change, const struct ledger_row *row)
{
        struct ledger_row adopted = *row;

        adopted.failed_fingerprint = change->fingerprint;
        return keep_row(watch, &adopted) ? back_off(watch, change, &adopted) : 0;
}

/* Whether a handler was told of the end meanwhile is unknown, and what was handled is of another time: the
 * object runs, whatever it is now. */
static int restore(struct watch *watch, const struct record_change *change, const struct ledger_row *row)
{
        struct controller *controller = watch->controller;
        struct ledger_row back = {
                .key = row->key,
                .uid = row->uid,
                .last_error = (char[]){""},
                .first_error = (char[]){""},
                .settling = (char[]){""},
                .written_version = (char[]){""},
                .kinds = row->kinds,
                .handled_realtime = row->handled_realtime,
                .crashes = row->crashes,
                .crashed_realtime = row->crashed_realtime,
        };

        /* If we are killed before this is recorded, the next life might handle the deletion before it hears of
         * the object. */
        controller->commit.due = true;
        queue_withdraw_deletion(controller->queue, watch_number(watch), change->key, change->uid,
                                controller->now.boottime);
        assign_cancel(watch, change->key, change->uid, "its object exists again");
        controller_log(
                controller, LOG_NOTICE, NULL,
                LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", change->key},
                           {"RECONCILED_UID", change->uid}),
                "%s of watch %s exists again: its deletion was not handled yet and is dropped; the object "
                "is reconciled",
                change->key, watch->config->name);
        return keep_row(watch, &back) ? change_push(watch, change, CHANGE_UPDATED, &back, RUN_RESTORED, 0)
                                      : 0;
}

/* Whether its handler was told meanwhile is unknown: it runs again. */
static int select_again(struct watch *watch, const struct record_change *change,
                        const struct ledger_row *row)
{
        struct ledger_row again = *row;

        again.unselected = false;
        again.fingerprint = again.failed_fingerprint = again.next_realtime = 0;
        again.attempts = again.refused = 0;
        return keep_row(watch, &again) ? change_push(watch, change, CHANGE_UPDATED, &again, RUN_SELECTED, 0)
                                       : 0;
}

/* The row stays until the deletion is handled, even if we die. */
static int tell_deletion(struct watch *watch, const struct record_change *change,
                         const struct ledger_row *row)
{
        struct ledger_row deleting = *row;

        deleting.deleting = true;
        deleting.unselected = false;
        deleting.attempts = deleting.refused = 0;
        deleting.next_realtime = 0;
        return keep_row(watch, &deleting)
                       ? change_push(watch, change, CHANGE_DELETED, &deleting, RUN_DELETED, 0)
                       : 0;
}

/* A row of which only the object is known. */
static struct ledger_row unknown_row(const struct record_change *change)
{
        return (struct ledger_row){.key = (char *)(uintptr_t)change->key,
                                   .uid = (char *)(uintptr_t)change->uid};
}

/* Never handed to a handler, or finalized: nothing is owed. An object that is being finalized at this moment
 * is over with its run (run/outcome.c); the worker sees whether somebody has robbed it of our finalizer.
 * Where the ledger was lost, each object may have been handed out. */
static int forget_object(struct watch *watch, const struct record_change *change,
                         const struct ledger_row *row _unused_)
{
        const struct ledger_row unknown = unknown_row(change);
        struct controller *controller = watch->controller;

        /* It would block what is owed to another object of its name. */
        queue_forget(controller->queue, watch_number(watch), change->key, change->uid,
                     controller->now.boottime);
        if (watch->config->finalizer || !controller->ledger_lost)
                return handled_add(watch, change->key, change->uid, change->sequence);
        return tell_deletion(watch, change, &unknown);
}

static int tell_unselected(struct watch *watch, const struct record_change *change,
                           const struct ledger_row *row)
{
        struct ledger_row left = *row;

        if (row->unselected && row->attempts > 0)
                return back_off(watch, change, row);
        left.deleting = row->unselected && row->deleting; /* as of outcome.c; else it exists after all */
        left.unselected = true;
        left.permanent = false;
        left.attempts = left.refused = 0;
        left.next_realtime = 0;
        return keep_row(watch, &left)
                       ? change_push(watch, change, CHANGE_UNSELECTED, &left, RUN_UNSELECTED, 0)
                       : 0;
}

static int leave_untold(struct watch *watch, const struct ledger_row *row)
{
        int r = ledger_remove(watch->controller->ledger, watch->config->name, row->key, row->uid);

        if (r < 0)
                ledger_failed(watch->controller, r);
        return 0;
}

/* A worker has the first run that this object ever had, so no earlier configuration has handed it out. */
static bool is_in_first_run(const struct watch *watch, const struct record_change *change)
{
        const struct assignment *given = assign_find(watch, change->key, change->uid);

        return given && given->is_first;
}

/* The watch may have wanted the finalizer until it was started again. A run since then has taken it off, unless
 * that run was the one that tells that the object has left. */
static bool may_have_finalizer(const struct watch *watch, const struct record_change *change,
                               const struct ledger_row *row)
{
        if (!row || is_in_first_run(watch, change))
                return false;
        return row->unselected || row->handled_realtime < watch->started;
}

/* Our finalizer must not stay on an object that we have nothing to do with, and its end is owed until another
 * watch of the kind has it. */
static int leave_object(struct watch *watch, const struct record_change *change,
                        const struct ledger_row *row)
{
        struct controller *controller = watch->controller;
        const struct config_watch *config = watch->config;
        const struct ledger_row unknown = unknown_row(change);
        bool told = !change->first && (config->unselected || config->finalizer || config->shared ||
                                       may_have_finalizer(watch, change, row));

        queue_forget(controller->queue, watch_number(watch), change->key, change->uid,
                     controller->now.boottime);
        refusal_forget(watch, change->key, change->uid);
        if (!row && mark_find(&watch->finalized, change->key, change->uid))
                return 0;
        if (!row && controller->ledger_lost && told)
                row = &unknown; /* the object may have been handed out, and have our finalizer */
        if (!row)
                return 0;
        controller_log(controller, LOG_INFO, NULL,
                       LOG_FIELDS({"RECONCILED_WATCH", config->name}, {"RECONCILED_KEY", change->key},
                                  {"RECONCILED_UID", change->uid}),
                       "%s is no longer selected by watch %s, but still exists: %s", change->key,
                       config->name, told ? "the handler is told" : "the watch forgets it");
        return told ? tell_unselected(watch, change, row) : leave_untold(watch, row);
}

static int (*const carry_out[ROW_DECISION_COUNT])(struct watch *, const struct record_change *,
                                                  const struct ledger_row *) = {
        [DECIDE_NOTHING] = nothing,      [DECIDE_ADD] = enqueue_change,
        [DECIDE_RUN] = run_object,       [DECIDE_REST] = rest,
        [DECIDE_BACK_OFF] = back_off,    [DECIDE_ADOPT_CRASH] = adopt_crash,
        [DECIDE_RESTORE] = restore,      [DECIDE_SELECT] = select_again,
        [DECIDE_FORGET] = forget_object, [DECIDE_TELL_DELETION] = tell_deletion,
        [DECIDE_LEAVE] = leave_object,
};

/* ---- what another replica has told of */

/* The object is there. Over which content it crashed is not known here: over this one, as far as we are concerned. */
static int believe(struct watch *watch, const struct record_change *change, const struct ledger_row **row)
{
        struct ledger_row believed = **row;
        int r;

        believed.failed_fingerprint = believed.crashes > 0 ? change->fingerprint : 0;
        r = ledger_put(watch->controller->ledger, watch->config->name, &believed);
        return r < 0 ? r
                     : ledger_look(watch->controller->ledger, watch->config->name, change->key, change->uid,
                                   row);
}

/* The object is not there, and maybe never was: whoever may write the leader record could have the handler clean up what lives. If
 * it was, its end fell into the takeover. A finalizer of ours on one that is not selected must come off. */
static int disbelieve(struct watch *watch, const struct record_change *change)
{
        struct controller *controller = watch->controller;
        int r = ledger_remove(controller->ledger, watch->config->name, change->key, change->uid);

        if (r < 0) {
                ledger_failed(controller, r);
                return 0;
        }
        controller->hearsay_dropped = true;
        controller_log(controller, LOG_INFO, NULL,
                       LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", change->key},
                                  {"RECONCILED_UID", change->uid}),
                       "%s of watch %s, which the leader record names, is not there: the watch forgets it",
                       change->key, watch->config->name);
        if (change->kind == CHANGE_UNSELECTED && (watch->config->finalizer || watch->config->shared))
                return leave_object(watch, change, NULL);
        queue_forget(controller->queue, watch_number(watch), change->key, change->uid,
                     controller->now.boottime);
        return change->kind == CHANGE_DELETED
                       ? handled_add(watch, change->key, change->uid, change->sequence)
                       : 0;
}

/* ---- a change */

static int decide(struct watch *watch, const struct record_change *change, const struct ledger_row *row)
{
        enum row_state state = row_state(row, row && is_being_handled(watch, change));
        enum row_input input = row_input(watch, change, row, state);

        return carry_out[row_decide(state, input)](watch, change, row);
}

/* The operator's own object has no changes, and handlers do not hear of its deletion. Another one takes its place. */
static int take_own(struct watch *watch, const struct record_change *change)
{
        struct controller *controller = watch->controller;
        const struct ledger_row *row = NULL;
        int r;

        if (change->kind == CHANGE_UPDATED) {
                r = ledger_look(controller->ledger, watch->config->name, change->key, change->uid, &row);
                if (r >= 0 || r == -ENOENT)
                        r = schedule_found(watch, change, row);
                if (r < 0 && r != -ENOMEM)
                        ledger_failed(controller, r);
                due_arm(controller);
                return r == -ENOMEM ? r : 0;
        }
        queue_forget(controller->queue, watch_number(watch), change->key, change->uid,
                     controller->now.boottime);
        refusal_forget(watch, change->key, change->uid);
        r = ledger_remove(controller->ledger, watch->config->name, change->key, change->uid);
        if (r < 0)
                ledger_failed(controller, r);
        return handled_add(watch, change->key, change->uid, change->sequence);
}

/* An end writes: its row is a copy. */
static int judge_ending(struct watch *watch, const struct record_change *change)
{
        struct ledger_row row = {0};
        int r = ledger_get(watch->controller->ledger, watch->config->name, change->key, change->uid, &row);

        if (r < 0 && r != -ENOENT) {
                ledger_failed(watch->controller, r);
                return 0;
        }
        mark_drop(&watch->tries, change->key, change->uid);
        if (change->kind == CHANGE_DELETED) {
                mark_drop(&watch->finalized, change->key, change->uid);
                refusal_forget(watch, change->key, change->uid);
        }
        if (r >= 0 && ledger_row_is_hearsay(&row))
                r = disbelieve(watch, change);
        else
                r = decide(watch, change, r == -ENOENT ? NULL : &row);
        ledger_row_done(&row);
        return r;
}

static int take_update(struct watch *watch, const struct record_change *change)
{
        const struct ledger_row *row = NULL;
        int r;

        if (mark_find(&watch->finalized, change->key, change->uid))
                return 0;
        r = ledger_look(watch->controller->ledger, watch->config->name, change->key, change->uid, &row);
        if (r >= 0 && ledger_row_is_hearsay(row))
                r = believe(watch, change, &row);
        if (r < 0 && r != -ENOENT) {
                ledger_failed(watch->controller, r);
                return 0;
        }
        r = decide(watch, change, row);
        return r < 0 ? r : finalizer_review(watch, change);
}

static int judge_change(struct watch *watch, const struct record_change *change)
{
        if (watch->controller->uninstall.active)
                return uninstall_take(watch, change);
        if (watch->config->owner)
                return watch->config->is_related ? related_changed(watch, change)
                                                 : owned_changed(watch, change);
        if (watch->config->own)
                return take_own(watch, change);
        queue_hurry_twins(watch->controller->queue, watch_number(watch), change->key, change->uid,
                          watch->controller->now.boottime);
        switch (change->kind) {
        case CHANGE_UPDATED:
                return take_update(watch, change);
        case CHANGE_DELETED:
        case CHANGE_UNSELECTED:
                return judge_ending(watch, change);
        default:
                return -EPROTO;
        }
}

int change_keys(struct watch *watch, const struct message_keys *keys)
{
        struct controller *controller = watch->controller;
        int r = keys->change_count >= CROWD ? ledger_hold(controller->ledger) : 0;

        if (r < 0) {
                ledger_failed(controller, r);
                return 0;
        }
        watch->credit_used += keys->change_count;
        if (keys->change_count > 0)
                watch->behind_realtime = 0;
        if (strcmp(keys->watch, watch->config->name) != 0 || watch->credit_used > watch->credit_given)
                return -EPROTO;
        r = epoch_take(watch, keys->epoch);
        if (r < 0) {
                ledger_failed(controller, r);
                return 0;
        }
        watch->generation = keys->generation; /* before the first list is complete, too */
        for (size_t i = 0; i < keys->change_count && r >= 0; i++)
                r = judge_change(watch, &keys->change[i]);
        controller_settle_soon(controller);
        return r < 0 ? r : 0;
}

/* ---- reports of a watch about itself */

static int synced_first(struct watch *watch)
{
        int r = watch->config->own ? schedule_begin(watch) : 0;

        if (r < 0)
                ledger_failed(watch->controller, r);
        recover(watch);
        owed_start(watch);
        due_arm(watch->controller);
        owned_known(watch);
        return related_recheck(watch);
}

int change_synced(struct watch *watch, const struct message_synced *synced)
{
        struct controller *controller = watch->controller;
        bool first = !watch->synced;
        int r = text_replace(&watch->resource_version, synced->resource_version);

        if (r < 0)
                return r;
        watch->synced = true;
        watch->other_cluster = synced->other_cluster;
        watch->synced_realtime = controller->now.realtime;
        watch->objects = synced->objects;
        watch->generation = synced->generation;
        controller_log(controller, first ? LOG_INFO : LOG_DEBUG, MESSAGE_ID_WATCH_SYNCED,
                       LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                       "watch %s is in sync: %llu %s at resourceVersion %s", watch->config->name,
                       (unsigned long long)synced->objects, counted(synced->objects, "object", "objects"),
                       synced->resource_version);
        r = first ? synced_first(watch) : 0;
        controller_settle_soon(controller);
        return r;
}

int change_checked(struct watch *watch, const struct message_checked *checked)
{
        struct controller *controller = watch->controller;
        int r = ledger_scope_set(controller->ledger, watch->config->name, checked->scope, checked->cluster);

        watch->checked = true;
        if (r < 0)
                ledger_failed(controller, r);
        controller_settle_soon(controller);
        return 0;
}

int change_swept(struct watch *watch, const struct message_swept *swept)
{
        int r;

        watch->swept = watch->swept || !swept->unseen[0];
        unsure_over(watch);
        r = uninstall_swept(watch, swept);
        controller_settle_soon(watch->controller);
        return r;
}
