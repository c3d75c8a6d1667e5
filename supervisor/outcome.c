/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a finished run means for its object: the ledger's row, the queue, the log. One failure is counted for
 * one elapsed backoff, whatever events arrive meanwhile; only a success ends the count.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "ipc/message-id.h"
#include "supervisor/handover.h"
#include "supervisor/supervisor.h"

/* It waits for its handler's program. Unlike what waits for the server it runs when the handler changes. */
const char not_started_reason[] = "notStarted";

struct ending {
        struct watch *watch;
        const struct message_done *done;
        enum change_kind kind;
        const char *reason; /* static: of the run */
        struct ledger_row row;
        bool remove_row, keep_row, was_retry; /* keep: as it is on disk */
        bool is_first;                        /* of its object */
        bool counted;                         /* this failure: it is the first of its backoff */
        bool fatal;                           /* the operator ends for it, once it is written down */
        bool refused;                         /* this failure is nobody's: it counts as no attempt */
        bool past_deadline;                   /* ... and we were refused for too long */
        bool was_former;                      /* its handler has been replaced since it was given out */
        bool has_left;                        /* the selection, while it ran: nothing is owed to it */
        bool is_withdrawn;                    /* a deletion: its object is there again */
        bool is_outdated; /* its database went back in time while it ran: so did the versions */
        struct queue_outcome outcome;
};

/* ---- log */

/* The failures that count: a run that could not reach the server, or was refused by it, is none. */
static uint64_t own_attempts(const struct ledger_row *row)
{
        return row->attempts - row->refused;
}

static void log_failure(const struct ending *ending, int priority, const char *id, const char *next)
{
        const struct message_done *done = ending->done;
        char attempt[24], code[12] = "";
        int status = (int)done->wait_status;

        snprintf(attempt, sizeof(attempt), "%" PRIu64, own_attempts(&ending->row) + ending->refused);
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
                snprintf(code, sizeof(code), "%d", WEXITSTATUS(status));
        log_write(priority, id,
                  LOG_FIELDS({"RECONCILED_WATCH", done->watch}, {"RECONCILED_KEY", done->key},
                             {"RECONCILED_UID", done->uid}, {"RECONCILED_ATTEMPT", attempt},
                             {"RECONCILED_EXIT_CODE", code},
                             {"RECONCILED_ACTION", run_action_name((enum run_action)done->action)}),
                  "%s of %s of watch %s failed (attempt %s): %s; %s",
                  run_action_name((enum run_action)done->action), done->key, done->watch, attempt,
                  done->message[0] ? done->message : run_result_name((enum run_result)done->result), next);
}

static void log_retry(const struct ending *ending, const char *id, uint64_t delay)
{
        char text[64], next[96];

        duration_format(delay < USEC_PER_SEC ? delay / 1000 * 1000 : delay / 100000 * 100000, text,
                        sizeof(text));
        snprintf(next, sizeof(next),
                 ending->refused ? "that counts as no attempt; tried again in %s" : "next attempt in %s",
                 text);
        log_failure(ending, LOG_WARNING, id, next);
}

/* ---- results */

static int succeeded(struct ending *ending)
{
        const struct message_done *done = ending->done;
        const struct config_watch *config = ending->watch->config;
        uint64_t now = ledger_now(ending->watch->child->supervisor), delay = done->requeue_after_usec;
        const char *reason = delay > 0 ? "requeueAfter" : "resync";
        struct ledger_row *row = &ending->row;

        ending->watch->successes++;
        ending->outcome.handled = true;
        if (done->action == ACTION_FINALIZE
                    ? delay == 0
                    : ending->kind != CHANGE_UPDATED || done->action == ACTION_RELEASE) {
                ending->remove_row = true;
                return 0;
        }
        if (config->resync_usec > 0 && (delay == 0 || config->resync_usec < delay)) {
                reason = "resync";
                delay = resync_time(ending->watch, row, now) - now;
        }
        row->fingerprint = done->own_fingerprint ? done->own_fingerprint : done->fingerprint;
        row->failed_fingerprint = 0;
        row->attempts = row->throttled = row->refused = 0;
        row->crashes = row->crashed_realtime = row->quarantined_until = 0;
        row->permanent = false;
        row->handled_realtime = now;
        row->related = done->related;
        row->next_realtime = delay > 0 ? now + delay : 0;
        if (text_replace(&row->next_reason, delay > 0 ? reason : "") < 0 ||
            text_replace(&row->last_error, "") < 0 || text_replace(&row->first_error, "") < 0)
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
        uint64_t now = ledger_now(ending->watch->child->supervisor);

        ending->outcome.handled = ending->keep_row = true;
        if (row->next_realtime == 0 || row->next_realtime > now + DELAY_IN_QUEUE_USEC)
                return 0;
        ending->outcome.again = true;
        ending->outcome.delay_usec = row->next_realtime > now ? row->next_realtime - now : 0;
        ending->outcome.reason = strcmp(row->next_reason, "resync") == 0 ? "resync" : "requeueAfter";
        return 0;
}

/* `delay` from now, remembered across restarts; short ones wait in the queue, long ones only in the ledger.
 */
static int schedule_retry(struct ending *ending, uint64_t delay, const char *reason)
{
        bool releases = ending->done->action == ACTION_RELEASE; /* only the queue knows of it */

        ending->row.next_realtime = ledger_now(ending->watch->child->supervisor) + delay;
        ending->outcome.handled = delay > DELAY_IN_QUEUE_USEC && !releases;
        ending->outcome.delay_usec = delay;
        ending->outcome.reason = releases ? ending->reason : reason;
        return text_replace(&ending->row.next_reason, reason);
}

/* One more failure, and its cause. */
static int note_failure(struct ending *ending)
{
        const struct message_done *done = ending->done;
        struct ledger_row *row = &ending->row;
        /* A change runs at once, but a failure of it is no further failure of the backoff that it broke
         * into. */
        bool in_backoff = row->attempts > 0 && !ending->was_retry &&
                          row->next_realtime > ledger_now(ending->watch->child->supervisor);
        /* An outage that is over is not the cause of what fails behind it. */
        bool is_first = !row->first_error[0] || (!ending->refused && row->attempts == row->refused);

        ending->watch->failures_total++;
        if (row->permanent) /* it had been given up: what has changed is tried anew as often */
                row->attempts = row->refused = 0;
        row->permanent = false;
        row->quarantined_until = 0; /* it was tried again, and nobody has died of it */
        if (row->crashes == 0)
                row->crashed_realtime = 0; /* it was merely under way: no suspect any more */
        ending->counted = !in_backoff || row->attempts == 0;
        row->attempts += ending->counted;
        row->refused += ending->counted && ending->refused;
        /* What we have written ourselves before it failed is no change to run for. */
        row->failed_fingerprint = done->own_fingerprint ? done->own_fingerprint : done->fingerprint;
        if (text_replace(&row->last_error, done->message) < 0 ||
            (is_first && text_replace(&row->first_error, done->message) < 0))
                return -ENOMEM;
        return 0;
}

/* It is never given up: there will be no change to wait for. */
static bool is_cleanup(const struct ending *ending)
{
        return ending->kind != CHANGE_UPDATED || ending->done->action == ACTION_FINALIZE ||
               ending->done->action == ACTION_FINALIZER;
}

static int give_up(struct ending *ending, const char *next)
{
        struct ledger_row *row = &ending->row;

        if (ending->was_former) {
                handler_forgive(row);
                log_failure(ending, LOG_WARNING, MESSAGE_ID_RUN_FAILED,
                            "its handler has changed since, and the new one runs at once");
                return schedule_retry(ending, 0, handler_reason);
        }
        row->permanent = true;
        row->next_realtime = 0;
        ending->outcome.handled = true;
        log_failure(ending, LOG_ERR, MESSAGE_ID_RUN_PERMANENT, next);
        return text_replace(&row->next_reason, "");
}

static int failed(struct ending *ending)
{
        const struct config_watch *config = ending->watch->config;
        uint64_t delay;

        if (note_failure(ending) < 0)
                return -ENOMEM;
        if (ending->done->changed) {
                log_failure(ending, LOG_WARNING, MESSAGE_ID_RUN_FAILED,
                            "it has changed since, and runs at once");
                return schedule_retry(ending, 0, "changed");
        }
        if (config->retry_attempts > 0 && own_attempts(&ending->row) >= config->retry_attempts &&
            !is_cleanup(ending))
                return give_up(ending, "the limit of retry.attempts is reached: not tried again until the "
                                       "object changes");
        delay = retry_delay(config, own_attempts(&ending->row));
        log_retry(ending, MESSAGE_ID_RUN_FAILED, delay);
        return schedule_retry(ending, delay, "retry");
}

/* The server has said until when. That was logged once, for the resource (feed.c): not for each object. */
static int held_back(struct ending *ending)
{
        const struct config_watch *config = ending->watch->config;
        uint64_t held = ending->done->held_usec, delay;
        char text[64], next[96];

        if (note_failure(ending) < 0)
                return -ENOMEM;
        held = held_delay(held);
        delay = retry_delay(config, ending->row.refused);
        if (delay < held)
                delay = held;
        else
                ending->watch->waits = true;
        snprintf(next, sizeof(next), "that counts as no attempt; tried again in %s",
                 duration_format(delay / 100000 * 100000, text, sizeof(text)));
        log_failure(ending, LOG_DEBUG, NULL, next);
        return schedule_retry(ending, delay, delay > held ? "unavailable" : "held");
}

/* A run that came early, because the server seemed to be well again, waits for its whole backoff now. */
static int unavailable(struct ending *ending)
{
        bool was_early = strcmp(ending->row.next_reason, "recovered") == 0;
        struct watch *watch = ending->watch;
        uint64_t delay;
        int r = 0;

        ending->refused = true;
        if (ending->done->held_usec > 0 && ending->done->result == RESULT_UNAVAILABLE)
                return held_back(ending);
        if (note_failure(ending) < 0)
                return -ENOMEM;
        watch->waits = true;
        delay = ending->done->changed ? 0 : retry_delay(watch->config, ending->row.refused);
        if (ending->done->result == RESULT_FORBIDDEN)
                r = refusal_note(watch, ending->done, &delay);
        if (r < 0)
                return r;
        ending->past_deadline = r > 0 && watch->child->supervisor->phase <= PHASE_RUNNING;
        log_retry(ending, MESSAGE_ID_RUN_FAILED, delay);
        return schedule_retry(ending, delay,
                              was_early                   ? "retry"
                              : ending->done->not_started ? not_started_reason
                                                          : "unavailable");
}

/* The server takes what we write; or the object that was tried for that has other troubles now. */
static void note_recovery(struct ending *ending)
{
        enum run_result result = (enum run_result)ending->done->result;
        bool says_nothing = result == RESULT_FORBIDDEN || result == RESULT_UNAVAILABLE ||
                            result == RESULT_CANCELLED || result == RESULT_BEHIND ||
                            result == RESULT_SETTLING;

        if (result == RESULT_SUCCESS && (ending->done->own_resource_version[0] || ending->row.refused > 0)) {
                refusal_over(ending->watch);
                recover(ending->watch);
        } else if (!says_nothing) {
                refusal_forget(ending->watch, ending->done->key, ending->done->uid);
        }
}

static int failed_for_good(struct ending *ending)
{
        uint64_t delay = ending->watch->config->retry_max_usec;

        if (note_failure(ending) < 0)
                return -ENOMEM;
        if (!is_cleanup(ending))
                return give_up(ending, ending->watch->config->on_handler_change == ON_HANDLER_CHANGE_NONE
                                               ? "not tried again until the object changes"
                                               : "not tried again until the object or the handler changes");
        log_retry(ending, MESSAGE_ID_RUN_FAILED, delay);
        return schedule_retry(ending, delay, "retry");
}

/* ---- what ends the operator */

/* Its row is written first, so that after the restart this object waits, and the others do not. */
static int ends_operator(struct ending *ending)
{
        struct ledger_row *row = &ending->row;

        if (note_failure(ending) < 0)
                return -ENOMEM;
        /* One that ends in order anyway has no need to be ended for it. */
        ending->fatal = ending->watch->child->supervisor->phase <= PHASE_RUNNING;
        if (!ending->fatal) {
                uint64_t delay = blame_row(ending->watch->child->supervisor, ending->watch->config, row);

                log_retry(ending, MESSAGE_ID_RUN_FAILED, delay);
                return schedule_retry(ending, delay, "retry");
        }
        return schedule_retry(
                ending, blame_row(ending->watch->child->supervisor, ending->watch->config, row), "retry");
}

static int refused(struct ending *ending)
{
        const struct config_watch *config = ending->watch->config;
        uint64_t delay;

        /* Somebody waits for it, and the log says why it did not work. */
        if (ending->done->action == ACTION_RELEASE || ending->done->action == ACTION_FINALIZER)
                return failed(ending);
        if (config->on_unrecoverable == ON_UNRECOVERABLE_CRASH)
                return ends_operator(ending);
        if (note_failure(ending) < 0)
                return -ENOMEM;
        ending->row.throttled += ending->counted || ending->row.throttled == 0;
        delay = throttle_units(ending->row.throttled) * config->retry_throttle_usec;
        log_retry(ending, MESSAGE_ID_THROTTLED, delay);
        return schedule_retry(ending, delay, "throttled");
}

static int stopped(struct ending *ending)
{
        return ending->watch->config->allow_fatal ? ends_operator(ending) : failed(ending);
}

static void end_operator(struct supervisor *supervisor, const struct message_done *done)
{
        supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, done->key, "%s of %s of watch %s%s: %s",
                         run_action_name((enum run_action)done->action), done->key, done->watch,
                         done->result == RESULT_STOP ? " has stopped the operator (allowFatal)"
                                                     : " cannot be carried out (onUnrecoverable: crash)",
                         done->message);
}

/* The worker waits for the server, and holds nobody up: the same attempt goes on later, also when we die. */
static int settles(struct ending *ending)
{
        struct ledger_row *row = &ending->row;
        uint64_t delay = ending->done->settle_after_usec;

        /* Nothing is undone that is not on record. */
        ending->watch->child->supervisor->commit_due = true;
        row->next_realtime = ledger_now(ending->watch->child->supervisor) + delay;
        ending->outcome.delay_usec = delay;
        ending->outcome.reason = "settling";
        if (text_replace(&row->settling, ending->done->settling) < 0)
                return -ENOMEM;
        return text_replace(&row->next_reason, "settling");
}

static bool ends_settling(enum run_result result)
{
        return result != RESULT_SETTLING && result != RESULT_CONFLICT && result != RESULT_CANCELLED &&
               result != RESULT_BEHIND;
}

/* What is read after our own write must not be older than it. A write before a restore is undone: what comes
 * after it has lower versions, and is neither older nor ours. */
static int note_write(struct ending *ending)
{
        if (!ending->done->own_resource_version[0])
                return 0;
        if (ending->is_outdated) {
                ending->row.known_version = ending->row.written_realtime = 0;
                return text_replace(&ending->row.written_version, "");
        }
        ending->row.written_realtime = ledger_now(ending->watch->child->supervisor);
        ending->row.known_version = ending->done->known_version;
        return text_replace(&ending->row.written_version, ending->done->own_resource_version);
}

/* Gone while our finalizer held it, and that was taken away from what was being deleted: somebody did not
 * want `finalize` to be waited for. */
static void forget_vanished(struct ending *ending)
{
        const struct message_done *done = ending->done;

        ending->outcome.handled = ending->remove_row = true;
        log_write(
                LOG_WARNING, MESSAGE_ID_VANISHED,
                LOG_FIELDS({"RECONCILED_WATCH", done->watch}, {"RECONCILED_KEY", done->key},
                           {"RECONCILED_UID", done->uid}),
                "%s of watch %s is gone although its `finalize` had not succeeded: %s; what its handler has "
                "made may be left over",
                done->key, done->watch, done->message);
}

static int apply_result(struct ending *ending)
{
        enum run_result result = (enum run_result)ending->done->result;

        /* What settled has had its backoff before it began. */
        ending->was_retry = ending->was_retry || ending->row.settling[0];
        if (ends_settling(result) && text_replace(&ending->row.settling, "") < 0)
                return -ENOMEM;
        if (note_write(ending) < 0 ||
            (ending->done->kinds_known && text_replace(&ending->row.kinds, ending->done->kinds) < 0))
                return -ENOMEM;
        note_recovery(ending);
        switch (result) {
        case RESULT_SUCCESS:
                /* Nothing but our finalizer had to be done. */
                if (ending->done->action == ACTION_FINALIZER && !ending->is_first &&
                    ending->row.fingerprint == ending->done->fingerprint)
                        return was_unneeded(ending);
                return succeeded(ending);
        case RESULT_SETTLING:
                return settles(ending);
        case RESULT_RETRY:
                return failed(ending);
        case RESULT_UNAVAILABLE:
        case RESULT_FORBIDDEN:
                return unavailable(ending);
        case RESULT_UNRECOVERABLE:
                return refused(ending);
        case RESULT_STOP:
                return stopped(ending);
        case RESULT_PERMANENT:
                return failed_for_good(ending);
        case RESULT_STALE:
                if (ending->kind == CHANGE_DELETED) {
                        forget_vanished(ending);
                        return 0;
                }
                if (ending->done->action == ACTION_RELEASE && !ending->is_first) {
                        /* It goes on; what has changed meanwhile was not looked at. */
                        ending->outcome.reason = "requested";
                        return 0;
                }
                /* Gone: its deletion is announced by the watch. Nothing is owed only if this was its first
                 * run, and no handler has begun; a run of a former life may have. */
                ending->outcome.handled = true;
                ending->remove_row = ending->is_first && !ending->done->handler_ran && !ending->row.deleting;
                return 0;
        case RESULT_CONFLICT:
                /* The newest version is on its way, and one conflict is nobody's failure; one after another
                 * is (a handler that writes to its own object while it runs, a webhook that says 409). */
                if (strcmp(ending->reason, "conflict") == 0 || own_attempts(&ending->row) > 0)
                        return failed(ending);
                ending->outcome.delay_usec = ending->watch->config->retry_first_usec;
                ending->outcome.reason =
                        ending->done->action == ACTION_RELEASE ? ending->reason : "conflict";
                return 0;
        case RESULT_BEHIND:
                ending->outcome.delay_usec = BEHIND_USEC;
                ending->outcome.reason = ending->reason;
                return 0;
        case RESULT_UNNEEDED:
                return was_unneeded(ending);
        case RESULT_CANCELLED:
                ending->outcome.reason = "cancelled";
                return 0;
        case RESULT_RETURNED:
        case RESULT_COUNT:
                break;
        }
        return -EPROTO;
}

static int load_row(struct supervisor *supervisor, struct ending *ending)
{
        const struct message_done *done = ending->done;
        int r = ledger_get(supervisor->ledger, done->watch, done->key, done->uid, &ending->row);

        if (r != -ENOENT) {
                ending->has_left = r >= 0 && ending->kind == CHANGE_UPDATED && ending->row.unselected &&
                                   done->action == ACTION_RECONCILE;
                ending->is_withdrawn = r >= 0 && ending->kind == CHANGE_DELETED && !ending->row.deleting;
                return r;
        }
        ending->has_left = ending->kind == CHANGE_UPDATED;
        ending->row = (struct ledger_row){
                .key = strdup(done->key),
                .uid = strdup(done->uid),
                .next_reason = strdup(""),
                .last_error = strdup(""),
                .first_error = strdup(""),
                .settling = strdup(""),
                .written_version = strdup(""),
                .kinds = strdup(""),
        };
        return ending->row.key && ending->row.uid && ending->row.next_reason && ending->row.last_error &&
                               ending->row.first_error && ending->row.settling &&
                               ending->row.written_version && ending->row.kinds
                       ? 0
                       : -ENOMEM;
}

static int write_row(struct supervisor *supervisor, struct ending *ending)
{
        const struct message_done *done = ending->done;

        if (ending->keep_row)
                return 0;
        if (ending->remove_row && ending->kind == CHANGE_UNSELECTED) {
                int r = handover_tell(ending->watch, &ending->row, done->heir);

                if (r < 0)
                        return r;
        }
        if (ending->remove_row)
                return ledger_remove(supervisor->ledger, done->watch, done->key, done->uid);
        return ledger_put(supervisor->ledger, done->watch, &ending->row);
}

/* It has not begun, and is as it was before it was given to a worker. */
static int returned(struct supervisor *supervisor, const struct assignment *given)
{
        const struct config_watch *config = supervisor->watch[given->run.watch].config;
        struct ledger_row row = {0};
        int r = 0;

        if (given->is_first) /* else nothing is told of its end, should it be gone before it is run */
                r = ledger_get(supervisor->ledger, config->name, given->run.key, given->run.uid, &row);
        if (given->is_first && r >= 0 && !row.deleting && !row.unselected)
                r = ledger_remove(supervisor->ledger, config->name, given->run.key, given->run.uid);
        ledger_row_done(&row);
        if (r >= 0 || r == -ENOENT)
                return queue_return(supervisor->queue, given->run.id, clock_boottime_usec());
        ledger_failed(supervisor, r);
        return 0;
}

/* Written down before anybody hears of it. */
static void end_with_record(struct supervisor *supervisor, const struct ending *ending)
{
        int r = ledger_commit(supervisor->ledger);

        if (r < 0)
                ledger_failed(supervisor, r);
        end_operator(supervisor, ending->done);
        blame_tell(ending->watch->config, &ending->row);
}

static void end_refused(struct supervisor *supervisor, const struct ending *ending)
{
        int r = ledger_commit(supervisor->ledger);

        if (r < 0)
                ledger_failed(supervisor, r);
        refusal_fatal(ending->watch);
}

/* The news that it is gone may overtake the run that has let it go. */
static int forget_deletion(struct supervisor *supervisor, const struct ending *ending,
                           const struct queue_run *run)
{
        uint64_t sequence;

        if (!queue_take_deletion(supervisor->queue, run->watch, run->key, run->uid, clock_boottime_usec(),
                                 &sequence))
                return 0;
        return handled_add(ending->watch, run->key, run->uid, sequence);
}

/* The object has left the watch, so no row tells how the run ended. The queue may hold another run of it (it
 * is to be told, or is selected again). */
static int leave(struct ending *ending)
{
        const struct message_done *done = ending->done;

        ending->outcome = (struct queue_outcome){.handled = true};
        ending->keep_row = true;
        ending->fatal = done->result == RESULT_STOP && ending->watch->config->allow_fatal &&
                        ending->watch->child->supervisor->phase <= PHASE_RUNNING;
        log_write(LOG_INFO, NULL,
                  LOG_FIELDS({"RECONCILED_WATCH", done->watch}, {"RECONCILED_KEY", done->key},
                             {"RECONCILED_UID", done->uid}),
                  "%s of %s of watch %s ended (%s) when the object was not selected any more; nothing of it "
                  "is kept%s%s",
                  run_action_name((enum run_action)done->action), done->key, done->watch,
                  run_result_name((enum run_result)done->result), done->message[0] ? ": " : "",
                  done->message);
        return 0;
}

/* The row says what is owed now, and the queue has it (dispatch.c). */
static int withdraw(struct ending *ending)
{
        ending->outcome = (struct queue_outcome){.handled = true};
        ending->keep_row = true;
        return 0;
}

/* The handler ran without success, so the row's fingerprint is not the content that it saw last. The row is
 * cleared of it: then the object runs even if it goes back to its old content, also after a restart. The end
 * of the run writes the row anyway. */
static void note_handed_out(struct ending *ending)
{
        if (ending->done->handler_ran && ending->done->result != RESULT_SUCCESS)
                ending->row.fingerprint = 0;
}

/* One that failed under a program that nobody has looked at runs again when another one is there, even if
 * that is the one that was looked at before. */
static int note_handler(const struct ending *ending)
{
        bool counts = ending->outcome.backs_off ||
                      ending->watch->config->on_handler_change == ON_HANDLER_CHANGE_ALL;

        return counts && !ending->was_former ? handler_used(ending->watch, ending->done->handler_stamp) : 0;
}

static int conclude(struct supervisor *supervisor, struct ending *ending, const struct queue_run *run)
{
        int r = load_row(supervisor, ending);

        if (r >= 0)
                r = ending->has_left       ? leave(ending)
                    : ending->is_withdrawn ? withdraw(ending)
                                           : apply_result(ending);
        note_handed_out(ending);
        ending->outcome.backs_off = ending->row.attempts > 0 || ending->row.permanent;
        if (r >= 0 && !ending->outcome.backs_off && !ending->remove_row && !ending->has_left)
                r = owned_keep_due(ending->watch, &ending->row);
        if (r >= 0)
                r = note_handler(ending);
        if (r >= 0)
                r = write_row(supervisor, ending);
        if (r >= 0 && ending->kind == CHANGE_DELETED && ending->remove_row)
                r = handled_add(ending->watch, run->key, run->uid, run->sequence);
        else if (r >= 0 && ending->remove_row)
                r = forget_deletion(supervisor, ending, run);
        return r;
}

int outcome_done(struct supervisor *supervisor, const struct assignment *given,
                 const struct message_done *done)
{
        const struct queue_run *run = &given->run;
        struct ending ending = {
                .done = done,
                .watch = &supervisor->watch[run->watch],
                .kind = run->kind,
                .is_first = given->is_first,
                .reason = run->reason,
                .was_former =
                        handler_was_replaced(&supervisor->watch[run->watch], given, done->handler_stamp),
                .was_retry = strcmp(run->reason, "retry") == 0 || strcmp(run->reason, "throttled") == 0 ||
                             strcmp(run->reason, "unavailable") == 0 || strcmp(run->reason, "held") == 0 ||
                             run->reason == not_started_reason || run->reason == handler_reason ||
                             strcmp(run->reason, "recovered") == 0,
                .outcome = {.fingerprint = done->fingerprint,
                            .own_fingerprint = done->own_fingerprint,
                            .known_version = done->known_version},
        };
        int r;

        ending.is_outdated = assignment_is_outdated(supervisor, given);
        if (ending.is_outdated)
                ending.outcome.known_version = 0;
        turn_settle_soon(supervisor);
        if (done->result == RESULT_RETURNED)
                return returned(supervisor, given);
        if (finalizer_is_reason(run->reason))
                return finalizer_ended(supervisor, given, done);
        metrics_ended(&ending.watch->metrics, done, given->took_usec);
        r = conclude(supervisor, &ending, run);
        if (r < 0 && r != -EPROTO && r != -ENOMEM) {
                ledger_row_done(&ending.row);
                ledger_failed(supervisor, r);
                return 0;
        }
        if (r >= 0)
                r = queue_done(supervisor->queue, run->id, &ending.outcome, clock_boottime_usec(), NULL);
        if (r >= 0 && ending.fatal)
                end_with_record(supervisor, &ending);
        else if (r >= 0 && ending.past_deadline)
                end_refused(supervisor, &ending);
        else
                due_arm(supervisor);
        ledger_row_done(&ending.row);
        return r;
}
