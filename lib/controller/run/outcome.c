/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finished run changes its object's row in the ledger, its entry in the queue, and the log. Each result has
 * its function in the table below; those for failures are in failure.c.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/exit-code.h"
#include "controller/change/finalizer-only.h"
#include "controller/change/handled.h"
#include "controller/change/owned.h"
#include "controller/controller-watch.h"
#include "controller/due/assigned.h"
#include "controller/due/due.h"
#include "controller/due/next-attempt.h"
#include "controller/due/retry.h"
#include "controller/due/schedule.h"
#include "controller/due/watch-refusal.h"
#include "controller/effects.h"
#include "controller/run/assign.h"
#include "controller/run/blame.h"
#include "controller/run/failure.h"
#include "controller/run/outcome.h"
#include "controller/run/twin.h"
#include "ipc/message-id.h"
#include "ipc/run-reason.h"
#include "queue/queue-watch.h"

static int run_succeeded(struct ending *ending)
{
        const struct message_done *done = ending->done;
        const struct config_watch *config = ending->watch->config;
        uint64_t now = ledger_time(ending->watch->controller), delay = done->requeue_after_usec;
        enum run_reason reason = delay > 0 ? RUN_REQUEUE_AFTER : RUN_RESYNC;
        struct ledger_row *row = &ending->row;

        ending->watch->successes++;
        ending->watch->not_kept +=
                config->previous && done->action == ACTION_RECONCILE && !done->given_version[0];
        ending->outcome.handled = true;
        if (done->action == ACTION_FINALIZE
                    ? delay == 0
                    : ending->kind != CHANGE_UPDATED || done->action == ACTION_RELEASE) {
                ending->remove_row = true;
                return 0;
        }
        if (config->resync_usec > 0 && (delay == 0 || config->resync_usec < delay)) {
                reason = RUN_RESYNC;
                delay = resync_time(ending->watch, row, now) - now;
        }
        row->fingerprint =
                ending->outcome.own_fingerprint ? ending->outcome.own_fingerprint : done->fingerprint;
        row->failed_fingerprint = 0;
        row->attempts = row->throttled = row->refused = 0;
        row->crashes = row->crashed_realtime = row->quarantined_until = 0;
        row->permanent = false;
        row->handled_realtime = now;
        row->related = done->related;
        if (text_replace(&row->previous_version, done->given_version) < 0)
                return -ENOMEM;
        row->next_realtime = delay > 0 ? now + delay : 0;
        row->next_reason = delay > 0 ? reason : RUN_REASON_NONE;
        if (text_replace(&row->last_error, "") < 0 || text_replace(&row->first_error, "") < 0)
                return -ENOMEM;
        if (delay > 0 && delay <= DELAY_IN_QUEUE_USEC) {
                ending->outcome.again = true;
                ending->outcome.delay_usec = delay;
                ending->outcome.reason = reason;
        }
        return 0;
}

/* Everything stays as it was after the last success; what it waited for is still to come. */
static int was_unneeded(struct ending *ending)
{
        const struct ledger_row *row = &ending->row;
        uint64_t now = ledger_time(ending->watch->controller);

        ending->outcome.handled = ending->keep_row = true;
        if (row->next_realtime == 0 || row->next_realtime > now + DELAY_IN_QUEUE_USEC)
                return 0;
        ending->outcome.again = true;
        ending->outcome.delay_usec = row->next_realtime > now ? row->next_realtime - now : 0;
        ending->outcome.reason = row->next_reason == RUN_RESYNC ? RUN_RESYNC : RUN_REQUEUE_AFTER;
        return 0;
}

static void note_recovery(struct ending *ending)
{
        enum run_result result = ending->done->result;
        bool says_nothing = result == RESULT_FORBIDDEN || result == RESULT_UNAVAILABLE ||
                            result == RESULT_CANCELLED || result == RESULT_BEHIND ||
                            result == RESULT_SETTLING;

        if (result == RESULT_SUCCESS && (ending->done->own_resource_version[0] || ending->row.refused > 0)) {
                refusal_written(ending->watch, ending->done->key);
                recover(ending->watch);
        } else if (!says_nothing) {
                refusal_forget(ending->watch, ending->done->key, ending->done->uid);
        }
}

static void end_for_run(struct controller *controller, const struct message_done *done)
{
        controller_fatal(controller, EXIT_CODE_SOFTWARE, done->key, "%s of %s of watch %s%s: %s",
                         run_action_name(done->action), done->key, done->watch,
                         done->result == RESULT_STOP ? " has stopped the operator (allowFatal)"
                         : done->result == RESULT_UNRECOVERABLE
                                 ? " cannot be carried out (onUnrecoverable: crash)"
                                 : " has failed (startup.onFailure: fatal)",
                         done->message);
}

/* The worker waits for the server, and holds nobody up: the same attempt goes on later, also when we die. */
static int settles(struct ending *ending)
{
        struct ledger_row *row = &ending->row;
        uint64_t delay = ending->done->settle_after_usec;

        /* What is not recorded is not undone. */
        ending->watch->controller->commit.due = true;
        row->next_realtime = ledger_time(ending->watch->controller) + delay;
        ending->outcome.delay_usec = delay;
        /* A pause holds only what has not begun. */
        ending->outcome.reason = row->next_reason =
                ending->kind == CHANGE_UNSELECTED ? RUN_UNSELECTED : RUN_SETTLING;
        return text_replace(&row->settling, ending->done->settling);
}

/* Its handler knows that the object has left. Its row stays until another watch of the kind has the object, or
 * it is gone. */
static int waits_for_twin(struct ending *ending)
{
        struct ledger_row *row = &ending->row;
        int r;

        if (!row->unselected) { /* it is selected again, or gone: the queue has that */
                ending->outcome.handled = ending->keep_row = true;
                return 0;
        }
        row->attempts = row->throttled = row->refused = 0;
        r = text_replace(&row->last_error, "");
        if (r >= 0)
                r = text_replace(&row->first_error, "");
        return r < 0 ? r : settles(ending);
}

static int settling(struct ending *ending)
{
        return ending->kind == CHANGE_UNSELECTED ? waits_for_twin(ending) : settles(ending);
}

static bool ends_settling(enum run_result result)
{
        return result != RESULT_SETTLING && result != RESULT_CONFLICT && result != RESULT_CANCELLED &&
               result != RESULT_BEHIND;
}

/* What is read after our own write must not be older than it. A write before a restore is undone: what comes
 * after it has lower versions, and is neither older nor ours. */
static int note_run_write(struct ending *ending)
{
        if (!ending->done->own_resource_version[0])
                return 0;
        if (ending->is_outdated) {
                ending->row.known_version = ending->row.written_realtime = 0;
                return text_replace(&ending->row.written_version, "");
        }
        ending->row.written_realtime = ledger_time(ending->watch->controller);
        ending->row.known_version = ending->done->known_version;
        return text_replace(&ending->row.written_version, ending->done->own_resource_version);
}

/* Gone while our finalizer held it, and that was taken away from what was being deleted: somebody did not
 * want `finalize` to be waited for. */
static void forget_vanished(struct ending *ending)
{
        const struct message_done *done = ending->done;

        ending->outcome.handled = ending->remove_row = true;
        controller_log(
                ending->watch->controller, LOG_WARNING, MESSAGE_ID_VANISHED,
                LOG_FIELDS({"RECONCILED_WATCH", done->watch}, {"RECONCILED_KEY", done->key},
                           {"RECONCILED_UID", done->uid}),
                "%s of watch %s is gone although its `finalize` had not succeeded: %s; what its handler "
                "created may be left over",
                done->key, done->watch, done->message);
}

static int success(struct ending *ending)
{
        /* Only our finalizer had to be changed. */
        if (ending->done->action == ACTION_FINALIZER && !ending->is_first &&
            ending->row.fingerprint == ending->done->fingerprint)
                return was_unneeded(ending);
        return run_succeeded(ending);
}

/* The object is gone: its deletion is announced by the watch. Nothing is owed only if this was its first run,
 * and no handler has begun; a run of a former life may have, and one that only a lost ledger knew of. */
static int stale(struct ending *ending)
{
        if (ending->kind == CHANGE_DELETED) {
                forget_vanished(ending);
                return 0;
        }
        if (ending->done->action == ACTION_RELEASE && !ending->is_first) {
                /* The run goes on later; it has not read changes that came in the meantime. */
                ending->outcome.reason = RUN_REQUESTED;
                return 0;
        }
        ending->outcome.handled = true;
        ending->remove_row = ending->is_first && !ending->done->handler_ran && !ending->row.deleting &&
                             (ending->watch->config->finalizer || !ending->watch->controller->ledger_lost);
        return 0;
}

/* The newest version is on its way, and one conflict is nobody's failure; one after another is (a handler
 * that writes to its own object while it runs, a webhook that says 409). */
static int conflict(struct ending *ending)
{
        if (ending->reason == RUN_CONFLICT || ending_attempts(&ending->row) > 0)
                return ending_failed(ending);
        ending->outcome.delay_usec = ending->watch->config->retry_first_usec;
        ending->outcome.reason = ending->done->action == ACTION_RELEASE ? ending->reason : RUN_CONFLICT;
        return 0;
}

/* Its watch is broken, or late: the object waits until the watch has caught up, and says so once. */
static void tell_behind(struct ending *ending)
{
        struct watch *watch = ending->watch;

        if (watch->behind_realtime == 0)
                controller_log(
                        watch->controller, LOG_WARNING, MESSAGE_ID_WATCH_BEHIND,
                        LOG_FIELDS({"RECONCILED_WATCH", watch->config->name},
                                   {"RECONCILED_KEY", ending->done->key},
                                   {"RECONCILED_UID", ending->done->uid}),
                        "watch %s is behind: for a second it has not shown what this operator wrote to %s; objects "
                        "run again when the watch shows them as they were written",
                        watch->config->name, ending->done->key);
        if (watch->behind_realtime == 0)
                watch->behind_realtime = watch->controller->now.realtime;
}

static int behind(struct ending *ending)
{
        bool waits_long = ending->behind >= BEHIND_MAX;

        if (waits_long)
                tell_behind(ending);
        ending->outcome.behind = true;
        ending->outcome.delay_usec = waits_long ? BEHIND_LONG_USEC : BEHIND_USEC;
        ending->outcome.reason = ending->reason;
        return 0;
}

static int cancelled(struct ending *ending)
{
        ending->outcome.reason = RUN_CANCELLED;
        return 0;
}

/* RESULT_RETURNED is none here: that run has not begun. */
static int (*const by_result[RESULT_COUNT])(struct ending *) = {
        [RESULT_SUCCESS] = success,
        [RESULT_RETRY] = ending_failed,
        [RESULT_PERMANENT] = ending_failed_for_good,
        [RESULT_STALE] = stale,
        [RESULT_CONFLICT] = conflict,
        [RESULT_UNAVAILABLE] = ending_unavailable,
        [RESULT_FORBIDDEN] = ending_unavailable,
        [RESULT_UNRECOVERABLE] = ending_refused,
        [RESULT_STOP] = ending_stopped,
        [RESULT_CANCELLED] = cancelled,
        [RESULT_BEHIND] = behind,
        [RESULT_UNNEEDED] = was_unneeded,
        [RESULT_SETTLING] = settling,
};

static int apply_result(struct ending *ending)
{
        enum run_result result = ending->done->result;

        /* A run that settled has had its backoff before it began. */
        ending->was_retry = ending->was_retry || ending->row.settling[0];
        if (ends_settling(result) && text_replace(&ending->row.settling, "") < 0)
                return -ENOMEM;
        if (note_run_write(ending) < 0 ||
            (ending->done->kinds_known && text_replace(&ending->row.kinds, ending->done->kinds) < 0))
                return -ENOMEM;
        note_recovery(ending);
        assert(result < RESULT_COUNT); /* assign_take() has looked */
        return by_result[result] ? by_result[result](ending) : -EPROTO;
}

static int load_row(struct controller *controller, struct ending *ending)
{
        const struct message_done *done = ending->done;
        int r = ledger_get(controller->ledger, done->watch, done->key, done->uid, &ending->row);

        if (r != -ENOENT) {
                ending->has_left = r >= 0 && ending->kind == CHANGE_UPDATED && ending->row.unselected &&
                                   done->action == ACTION_RECONCILE;
                /* A row that was made for this run has no reason yet. */
                if (r >= 0 && ending->kind == CHANGE_DELETED && ending->is_first)
                        ending->row.deleting = true;
                ending->is_withdrawn = r >= 0 && ending->kind == CHANGE_DELETED && !ending->row.deleting;
                return r;
        }
        ending->has_left = ending->kind == CHANGE_UPDATED;
        ending->is_withdrawn = ending->kind == CHANGE_DELETED; /* it had come back, and has left again */
        return ledger_row_new(done->key, done->uid, &ending->row);
}

static int write_ended_row(struct controller *controller, struct ending *ending)
{
        const struct message_done *done = ending->done;

        if (ending->keep_row)
                return 0;
        if (ending->remove_row && ending->kind == CHANGE_UNSELECTED) {
                int r = twin_rerun(ending->watch, &ending->row);

                if (r < 0)
                        return r;
        }
        if (ending->remove_row)
                return ledger_remove(controller->ledger, done->watch, done->key, done->uid);
        return ledger_put(controller->ledger, done->watch, &ending->row);
}

/* The run has not begun: its key is as it was before a worker got it. */
static int returned(struct controller *controller, const struct assignment *given)
{
        const struct config_watch *config = controller->watch[given->run.watch].config;
        const struct queue_outcome forgotten = {.handled = true};
        struct ledger_row row = {0};
        int r;

        r = ledger_get(controller->ledger, config->name, given->run.key, given->run.uid, &row);
        if (r == -ENOENT && given->run.kind == CHANGE_UPDATED) /* it has left meanwhile */
                return queue_done(controller->queue, given->run.id, &forgotten, controller->now.boottime);
        /* Else nobody is told of its end, should it be gone before it runs. */
        if (given->is_first && r >= 0 && !row.deleting && !row.unselected)
                r = ledger_remove(controller->ledger, config->name, given->run.key, given->run.uid);
        else if (given->is_first_of_time && r >= 0)
                r = schedule_returned(&controller->watch[given->run.watch], &row);
        ledger_row_done(&row);
        if (r >= 0 || r == -ENOENT)
                return queue_return(controller->queue, given->run.id, controller->now.boottime);
        ledger_failed(controller, r);
        return 0;
}

int outcome_return_unsent(struct controller *controller)
{
        struct assignment given;
        int r = 0;

        controller->has_cancelled = false;
        while (r >= 0 && assign_take_unsent(controller, &given)) {
                /* The queue's own are gone with the run. */
                _cleanup_free_ char *key = strdup(given.run.key), *uid = strdup(given.run.uid);

                queue_handler_ran(controller->queue, given.run.watch, given.run.id, false,
                                  controller->now.boottime);
                r = key && uid ? returned(controller, &given) : -ENOMEM;
                if (r >= 0)
                        r = owned_changed_meanwhile(controller, &given, key, uid);
        }
        return r;
}

/* In the ledger before anybody hears of it. */
static void end_with_record(struct controller *controller, const struct ending *ending)
{
        int r = ledger_commit(controller->ledger);

        if (r < 0)
                ledger_failed(controller, r);
        end_for_run(controller, ending->done);
        blame_tell(controller, ending->watch->config, &ending->row);
}

static void end_refused(struct controller *controller, const struct ending *ending)
{
        int r = ledger_commit(controller->ledger);

        if (r < 0)
                ledger_failed(controller, r);
        refusal_fatal(ending->watch);
}

static bool tells_end(const struct message_done *done)
{
        return done->action == ACTION_FINALIZE || done->action == ACTION_DELETED;
}

/* The news that it is gone may overtake the run that has let it go. If they have not, what was announced
 * before them is not handled any more. */
static int forget_deletion(struct controller *controller, const struct ending *ending,
                           const struct queue_run *run)
{
        uint64_t sequence, now = controller->now.boottime;

        if (queue_take_deletion(controller->queue, run->watch, run->key, run->uid, now, &sequence))
                return handled_add(ending->watch, run->key, run->uid, sequence);
        if (!tells_end(ending->done) || ending->is_outdated)
                return 0;
        queue_forget(controller->queue, run->watch, run->key, run->uid, now);
        return mark_add(&ending->watch->finalized, run->key, run->uid) ? 0 : -ENOMEM;
}

/* The object has left the watch, so no row shows how the run ended. The queue may hold another run of it (for
 * `unselected`, or because it is selected again). */
static int outcome_leave(struct ending *ending)
{
        const struct message_done *done = ending->done;

        ending->outcome = (struct queue_outcome){.handled = true};
        ending->keep_row = true;
        ending->fatal = done->result == RESULT_STOP && ending->watch->config->allow_fatal &&
                        !ending->watch->controller->is_ending;
        controller_log(
                ending->watch->controller, LOG_INFO, NULL,
                LOG_FIELDS({"RECONCILED_WATCH", done->watch}, {"RECONCILED_KEY", done->key},
                           {"RECONCILED_UID", done->uid}),
                "%s of %s of watch %s ended (%s) after the object had left the selection; its result is "
                "dropped%s%s",
                run_action_name(done->action), done->key, done->watch, run_result_name(done->result),
                done->message[0] ? ": " : "", done->message);
        return 0;
}

/* The row says what is owed now, and the queue has it (change/change.c). */
static int withdraw(struct ending *ending)
{
        ending->outcome = (struct queue_outcome){.handled = true};
        ending->keep_row = true;
        return 0;
}

/* The handler ran without success, so the row's fingerprint is not the content that it saw last; nor is the
 * one that it was given up with before. The row is cleared of them: then the object runs even if it goes
 * back to its old content, also after a restart. The end of the run writes the row anyway. */
static void note_handed_out(struct ending *ending)
{
        const struct message_done *done = ending->done;
        struct ledger_row *row = &ending->row;
        uint64_t own = ending->outcome.own_fingerprint;
        bool is_of_now =
                row->failed_fingerprint == done->fingerprint || (own && row->failed_fingerprint == own);

        if (!done->handler_ran || done->result == RESULT_SUCCESS)
                return;
        row->fingerprint = 0;
        if (row->permanent && !is_of_now)
                ledger_row_unknown(row);
}

/* The object left while it was being deleted, and our finalizer is off. Whatever it is now, its end is owed.
 */
static void note_released(struct ending *ending)
{
        if (ending->kind == CHANGE_UNSELECTED && ending->done->action == ACTION_DELETED)
                ending->row.deleting = ending->row.deleting || ending->row.unselected;
}

/* A schedule is due again at its next time, whatever the end of this run says of its object. */
static void note_next_time(struct ending *ending, bool is_first_of_time)
{
        if (!ending->watch->config->own || ending->keep_row || ending->remove_row || ending->has_left)
                return;
        if (!schedule_ended(ending->watch, &ending->row, ending->done, is_first_of_time))
                return;
        ending->outcome.handled = true;
        ending->outcome.again = false;
        ending->outcome.delay_usec = 0;
        ending->outcome.reason = RUN_REASON_NONE;
}

static int conclude_run(struct controller *controller, struct ending *ending, const struct assignment *given)
{
        const struct queue_run *run = &given->run;
        int r = load_row(controller, ending);

        if (r >= 0)
                r = ending->has_left       ? outcome_leave(ending)
                    : ending->is_withdrawn ? withdraw(ending)
                                           : apply_result(ending);
        note_handed_out(ending);
        note_released(ending);
        if (r >= 0)
                note_next_time(ending, given->is_first_of_time);
        ending->outcome.backs_off = ending->row.attempts > 0 || ending->row.permanent;
        if (r >= 0 && !ending->outcome.backs_off && !ending->remove_row && !ending->has_left)
                owned_keep_due(ending->watch, &ending->row);
        if (r >= 0)
                r = write_ended_row(controller, ending);
        if (r >= 0 && ending->kind == CHANGE_DELETED && ending->remove_row)
                r = handled_add(ending->watch, run->key, run->uid, run->sequence);
        else if (r >= 0 && ending->remove_row)
                r = forget_deletion(controller, ending, run);
        return r;
}

static bool is_retry(enum run_reason reason)
{
        return reason == RUN_RETRY || reason == RUN_THROTTLED || reason == RUN_UNAVAILABLE ||
               reason == RUN_HELD || reason == RUN_NOT_STARTED || reason == RUN_HANDLER_CHANGED ||
               reason == RUN_RECOVERED;
}

static int end_assignment(struct controller *controller, const struct assignment *given,
                          const struct message_done *done)
{
        const struct queue_run *run = &given->run;
        struct ending ending = {
                .done = done,
                .watch = &controller->watch[run->watch],
                .kind = run->kind,
                .is_first = given->is_first,
                .reason = run->reason,
                .attempt = given->attempt,
                .behind = run->behind,
                .is_from_before = given->reloads < controller->reloads,
                .was_retry = is_retry(run->reason),
                .outcome = {.fingerprint = done->fingerprint,
                            .own_fingerprint = done->own_fingerprint,
                            .known_version = done->known_version},
        };
        int r;

        if (run->behind > 0 && done->result != RESULT_BEHIND && done->result != RESULT_RETURNED)
                ending.watch->behind_realtime = 0;
        ending.is_outdated = assignment_is_outdated(controller, given);
        /* It was written over what a restored database has in this version, which the handler was not shown. */
        if (ending.is_outdated)
                ending.outcome.known_version = ending.outcome.own_fingerprint = 0;
        controller_settle_soon(controller);
        queue_handler_ran(controller->queue, run->watch, run->id, done->handler_ran,
                          controller->now.boottime);
        if (done->result == RESULT_RETURNED)
                return returned(controller, given);
        if (run->kind == CHANGE_UPDATED)
                queue_hurry_twins(controller->queue, run->watch, run->key, run->uid,
                                  controller->now.boottime);
        if (finalizer_is_reason(run->reason))
                return finalizer_ended(controller, given, done);
        metrics_ended(&ending.watch->metrics, done, given->took_usec);
        r = conclude_run(controller, &ending, given);
        if (r < 0 && r != -EPROTO && r != -ENOMEM) {
                ledger_row_done(&ending.row);
                ledger_failed(controller, r);
                return 0;
        }
        if (r >= 0)
                r = queue_done(controller->queue, run->id, &ending.outcome, controller->now.boottime);
        if (r >= 0 && ending.fatal)
                end_with_record(controller, &ending);
        else if (r >= 0 && ending.past_deadline)
                end_refused(controller, &ending);
        else
                due_arm(controller);
        ledger_row_done(&ending.row);
        return r;
}

int outcome_done(struct controller *controller, struct assignment *given, const struct message_done *done)
{
        int r = end_assignment(controller, given, done);

        return r < 0 ? r : owned_changed_meanwhile(controller, given, done->key, done->uid);
}
