/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs that have failed. One failure is counted for one elapsed backoff, whatever events arrive meanwhile;
 * only a success ends the count.
 */
#include "controller/run/failure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/duration.h"
#include "controller/due/next-attempt.h"
#include "controller/due/watch-refusal.h"
#include "controller/effects.h"
#include "controller/run/blame.h"
#include "ipc/message-id.h"

/* ---- log */

/* All others wait for it. Later on somebody has asked for a run (`reconciledctl retry`), which is one like any other. */
static bool is_startup(const struct ending *ending)
{
        return ending->watch->config->own == OWN_STARTUP && !ending->watch->controller->startup_over;
}

uint64_t ending_attempts(const struct ledger_row *row)
{
        return row->attempts - row->refused;
}

static void log_failure(const struct ending *ending, int priority, const char *id, const char *next)
{
        const struct message_done *done = ending->done;
        char attempt[24], code[12] = "";
        int status = (int)done->wait_status;

        snprintf(attempt, sizeof(attempt), "%" PRIu64, ending->attempt);
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
                snprintf(code, sizeof(code), "%d", WEXITSTATUS(status));
        controller_log(ending->watch->controller, priority, id,
                       LOG_FIELDS({"RECONCILED_WATCH", done->watch}, {"RECONCILED_KEY", done->key},
                                  {"RECONCILED_UID", done->uid}, {"RECONCILED_ATTEMPT", attempt},
                                  {"RECONCILED_EXIT_CODE", code},
                                  {"RECONCILED_ACTION", run_action_name(done->action)}),
                       "%s of %s of watch %s failed (attempt %s): %s; %s", run_action_name(done->action),
                       done->key, done->watch, attempt,
                       done->message[0] ? done->message : run_result_name(done->result), next);
}

static const char *format_delay(uint64_t delay, char *buffer, size_t size)
{
        return duration_format(delay < USEC_PER_SEC ? delay / 1000 * 1000 : delay / 100000 * 100000, buffer,
                               size);
}

/* Said at each attempt, and so no more often than `retry` lets it run. */
static void describe_waiting(const struct controller *controller, char *out, size_t size)
{
        uint64_t now = ledger_time(controller), since = controller->started;
        char text[64];

        snprintf(out, size, "; all other handlers wait for this one, and have done so for %s",
                 format_delay(now > since ? now - since : 0, text, sizeof(text)));
}

static void log_retry(const struct ending *ending, const char *id, uint64_t delay)
{
        char text[64], next[256], waited[160] = "";

        if (is_startup(ending))
                describe_waiting(ending->watch->controller, waited, sizeof(waited));
        format_delay(delay, text, sizeof(text));
        snprintf(next, sizeof(next),
                 ending->refused || !ending->counted
                         ? "this does not count as an attempt; next attempt in %s%s"
                         : "next attempt in %s%s",
                 text, waited);
        log_failure(ending, LOG_WARNING, id, next);
}

/* ---- what follows */

static int schedule_retry(struct ending *ending, uint64_t delay, enum run_reason reason)
{
        bool releases = ending->done->action == ACTION_RELEASE; /* only the queue knows this run */

        ending->row.next_realtime = ledger_time(ending->watch->controller) + delay;
        ending->outcome.handled = delay > DELAY_IN_QUEUE_USEC && !releases;
        ending->outcome.delay_usec = delay;
        ending->outcome.reason = releases ? ending->reason : reason;
        ending->row.next_reason = reason;
        return 0;
}

/* Counts a failure and stores its cause. */
static int note_failure(struct ending *ending)
{
        const struct message_done *done = ending->done;
        struct ledger_row *row = &ending->row;
        /* A change runs at once, but a failure of it is no further failure of the backoff that it broke
         * into. */
        bool in_backoff = row->attempts > 0 && !ending->was_retry &&
                          row->next_realtime > ledger_time(ending->watch->controller);
        /* An outage that has ended is not the cause of a later failure. */
        bool is_first = !row->first_error[0] || (!ending->refused && row->attempts == row->refused);

        ending->watch->failures_total++;
        if (row->permanent) /* it had been given up: what has changed is tried again as often */
                row->attempts = row->refused = 0;
        row->permanent = false;
        row->quarantined_until = 0; /* it was tried again, and no process has died */
        if (row->crashes == 0)
                row->crashed_realtime = 0; /* it was only in flight: no suspect any more */
        ending->counted = !in_backoff || row->attempts == 0;
        row->attempts += ending->counted;
        row->refused += ending->counted && ending->refused;
        /* What we have written ourselves before it failed is no change to run for. */
        row->failed_fingerprint =
                ending->outcome.own_fingerprint ? ending->outcome.own_fingerprint : done->fingerprint;
        if (is_startup(ending) && text_replace(&ending->watch->controller->startup_error, done->message) < 0)
                return -ENOMEM;
        if (text_replace(&row->last_error, done->message) < 0 ||
            (is_first && text_replace(&row->first_error, done->message) < 0))
                return -ENOMEM;
        return 0;
}

/* Deletions are never given up: there will be no change to wait for. */
static bool is_cleanup(const struct ending *ending)
{
        return is_startup(ending) || ending->kind != CHANGE_UPDATED ||
               ending->done->action == ACTION_FINALIZE || ending->done->action == ACTION_FINALIZER;
}

static int give_up_object(struct ending *ending, const char *next)
{
        struct ledger_row *row = &ending->row;

        if (ending->watch->config->own == OWN_SCHEDULE)
                next = "not tried again until its next time";
        else if (ending->watch->config->own == OWN_STARTUP)
                next = "not tried again until the operator starts or is reloaded";

        if (ending->is_from_before) {
                log_failure(ending, LOG_WARNING, MESSAGE_ID_RUN_FAILED,
                            "the operator was reloaded since, so it runs once more at once");
                return schedule_retry(ending, 0, RUN_HANDLER_CHANGED);
        }
        row->permanent = true;
        row->next_realtime = 0;
        ending->outcome.handled = true;
        log_failure(ending, LOG_ERR, MESSAGE_ID_RUN_PERMANENT, next);
        row->next_reason = RUN_REASON_NONE;
        return 0;
}

/* `startup.onFailure: fatal`. What nobody's handler is to blame for is retried all the same. */
static int end_startup(struct ending *ending)
{
        ending->fatal = !ending->watch->controller->is_ending;
        return schedule_retry(ending, 0, RUN_START);
}

static bool startup_is_fatal(const struct ending *ending)
{
        return is_startup(ending) && ending->watch->config->startup_failure == STARTUP_FATAL &&
               ending->done->handler_failed;
}

int ending_failed(struct ending *ending)
{
        const struct config_watch *config = ending->watch->config;
        uint64_t delay;

        if (note_failure(ending) < 0)
                return -ENOMEM;
        if (startup_is_fatal(ending))
                return end_startup(ending);
        if (ending->done->changed) {
                log_failure(ending, LOG_WARNING, MESSAGE_ID_RUN_FAILED,
                            "it has changed since, and runs at once");
                return schedule_retry(ending, 0, RUN_CHANGED);
        }
        if (config->retry_attempts > 0 && ending_attempts(&ending->row) >= config->retry_attempts &&
            !is_cleanup(ending))
                return give_up_object(ending,
                                      "the limit of retry.attempts is reached: not tried again until the "
                                      "object or the handler changes");
        /* The handler knows better than a backoff when another attempt makes sense. */
        delay = ending->done->result == RESULT_RETRY && ending->done->requeue_after_usec > 0
                        ? ending->done->requeue_after_usec
                        : retry_delay(ending->watch->controller, config, ending_attempts(&ending->row));
        log_retry(ending, MESSAGE_ID_RUN_FAILED, delay);
        return schedule_retry(ending, delay, RUN_RETRY);
}

/* The server has said until when. That was logged once, for the resource: not for each object. */
static int held_back(struct ending *ending)
{
        const struct config_watch *config = ending->watch->config;
        uint64_t held = ending->done->held_usec, delay;
        char text[64], next[96];

        if (note_failure(ending) < 0)
                return -ENOMEM;
        held = held_delay(ending->watch->controller, held);
        delay = retry_delay(ending->watch->controller, config, ending->row.refused);
        if (delay < held)
                delay = held;
        else
                ending->watch->waits = true;
        snprintf(next, sizeof(next), "this does not count as an attempt; next attempt in %s",
                 duration_format(delay / 100000 * 100000, text, sizeof(text)));
        log_failure(ending, LOG_DEBUG, NULL, next);
        return schedule_retry(ending, delay, delay > held ? RUN_UNAVAILABLE : RUN_HELD);
}

/* A run that came early, because the server seemed to be well again, waits for its whole backoff now. */
int ending_unavailable(struct ending *ending)
{
        bool was_early = ending->row.next_reason == RUN_RECOVERED;
        struct watch *watch = ending->watch;
        uint64_t delay;
        int r = 0;

        ending->refused = true;
        if (ending->done->held_usec > 0 && ending->done->result == RESULT_UNAVAILABLE)
                return held_back(ending);
        if (note_failure(ending) < 0)
                return -ENOMEM;
        watch->waits = true;
        delay = ending->done->changed ? 0
                                      : retry_delay(watch->controller, watch->config, ending->row.refused);
        if (ending->done->result == RESULT_FORBIDDEN)
                r = watch_refused(watch, ending->done, &delay);
        if (r < 0)
                return r;
        ending->past_deadline = r > 0 && !watch->controller->is_ending;
        log_retry(ending, MESSAGE_ID_RUN_FAILED, delay);
        return schedule_retry(ending, delay,
                              was_early                   ? RUN_RETRY
                              : ending->done->not_started ? RUN_NOT_STARTED
                                                          : RUN_UNAVAILABLE);
}

int ending_failed_for_good(struct ending *ending)
{
        uint64_t delay = ending->watch->config->retry_max_usec;

        if (note_failure(ending) < 0)
                return -ENOMEM;
        if (startup_is_fatal(ending))
                return end_startup(ending);
        if (!is_cleanup(ending))
                return give_up_object(ending, "not tried again until the object or the handler changes");
        log_retry(ending, MESSAGE_ID_RUN_FAILED, delay);
        return schedule_retry(ending, delay, RUN_RETRY);
}

/* ---- what ends the operator */

/* Its row is written first, so that after the restart this object waits, and the others do not. */
static int ends_operator(struct ending *ending)
{
        struct ledger_row *row = &ending->row;

        if (note_failure(ending) < 0)
                return -ENOMEM;
        /* An operator that stops anyway need not be ended for it. */
        ending->fatal = !ending->watch->controller->is_ending;
        if (!ending->fatal) {
                uint64_t delay = blame_row(ending->watch->controller, ending->watch->config, row);

                log_retry(ending, MESSAGE_ID_RUN_FAILED, delay);
                return schedule_retry(ending, delay, RUN_RETRY);
        }
        return schedule_retry(ending, blame_row(ending->watch->controller, ending->watch->config, row),
                              RUN_RETRY);
}

int ending_refused(struct ending *ending)
{
        const struct config_watch *config = ending->watch->config;
        uint64_t delay;

        /* A person waits for this run, and the log says why it did not work. */
        if (ending->done->action == ACTION_RELEASE || ending->done->action == ACTION_FINALIZER)
                return ending_failed(ending);
        if (config->on_unrecoverable == ON_UNRECOVERABLE_CRASH)
                return ends_operator(ending);
        if (note_failure(ending) < 0)
                return -ENOMEM;
        ending->row.throttled += ending->counted || ending->row.throttled == 0;
        delay = throttle_units(ending->row.throttled) * config->retry_throttle_usec;
        log_retry(ending, MESSAGE_ID_THROTTLED, delay);
        return schedule_retry(ending, delay, RUN_THROTTLED);
}

int ending_stopped(struct ending *ending)
{
        return ending->watch->config->allow_fatal ? ends_operator(ending) : ending_failed(ending);
}
