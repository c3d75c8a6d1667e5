/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our finalizer where it is not as its watch wants it, on an object that needs no run of its handler: one
 * that has lost it, one that was handled before the watch wanted it, one that has it from a former
 * configuration. A run of its own, which starts no handler and counts as no attempt, puts it on or takes it
 * off. A tool that takes it off again and again is not fought: each loss, and each failure, doubles the wait
 * (`retry`).
 */
#include <errno.h>

#include "base/duration.h"
#include "controller/change/finalizer-only.h"
#include "controller/controller-watch.h"
#include "controller/due/assigned.h"
#include "controller/due/next-attempt.h"
#include "controller/due/push.h"
#include "controller/due/retry.h"
#include "controller/due/watch-refusal.h"
#include "controller/effects.h"
#include "ipc/message-id.h"

/* ---- how often lately, per object */

/* Counts a try. Returns the delay before the next one. */
static int note_try(struct watch *watch, const char *key, const char *uid, uint64_t *ret_delay)
{
        uint64_t now = watch->controller->now.boottime;
        struct mark *try = mark_add(&watch->tries, key, uid);

        if (!try)
                return -ENOMEM;
        if (now > try->not_before + watch->config->retry_max_usec)
                try->count = 0;
        *ret_delay = retry_delay(watch->controller, watch->config, ++try->count);
        try->not_before = now + *ret_delay;
        return 0;
}

static uint64_t delay_of(const struct watch *watch, const char *key, const char *uid)
{
        uint64_t now = watch->controller->now.boottime;
        const struct mark *try = mark_find(&watch->tries, key, uid);

        return try && try->not_before > now ? try->not_before - now : 0;
}

/* ---- a run of its own */

/* An object whose run is in flight does not wait: that run may have put the finalizer on before the loss. */
static bool waits_for_first_run(const struct watch *watch, const struct ledger_row *row)
{
        return row->fingerprint == 0 && row->failed_fingerprint == 0 &&
               !assign_is_under_way(watch, row->key, row->uid);
}

int finalizer_review(struct watch *watch, const struct record_change *change)
{
        struct controller *controller = watch->controller;
        const struct ledger_row *row;
        struct queue_item item = {.nudge = true, .bare = true};
        int r = change->finalizer == FINALIZER_FINE ? -ENOENT
                                                    : ledger_look(controller->ledger, watch->config->name,
                                                                  change->key, change->uid, &row);

        if (r == -ENOENT)
                return 0; /* or the first run sees to it, which is queued already */
        if (r < 0) {
                ledger_failed(controller, r);
                return 0;
        }
        if (row->deleting || row->unselected || waits_for_first_run(watch, row))
                return 0;
        item.priority = change->first ? QUEUE_LOW : QUEUE_NORMAL;
        item.reason = change->first || change->finalizer == FINALIZER_LEFT_OVER ? RUN_FINALIZER
                                                                                : RUN_FINALIZER_LOST;
        return push_row(watch, row, item, delay_of(watch, row->key, row->uid));
}

/* A read after our own write must not return an older version. Whether others changed the object in between
 * is unknown: nobody has looked at it. */
static int note_finalizer_write(struct controller *controller, const struct assignment *given,
                                const struct message_done *done)
{
        struct ledger_row row = {0};
        int r = done->own_resource_version[0]
                        ? ledger_get(controller->ledger, done->watch, done->key, done->uid, &row)
                        : -ENOENT;

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (assignment_is_outdated(controller, given) ||
            row.written_realtime <= controller->watch[given->run.watch].epoch_since)
                row.known_version = 0; /* of another epoch */
        row.written_realtime = ledger_time(controller);
        r = text_replace(&row.written_version, done->own_resource_version);
        if (r >= 0)
                r = ledger_put(controller->ledger, done->watch, &row);
        ledger_row_done(&row);
        return r;
}

static void log_finalizer_failure(const struct watch *watch, const struct message_done *done, bool lost,
                                  uint64_t delay)
{
        const struct log_field fields[] = {{"RECONCILED_WATCH", done->watch},
                                           {"RECONCILED_KEY", done->key},
                                           {"RECONCILED_UID", done->uid},
                                           {NULL, NULL}};
        char text[64];

        duration_format(delay < USEC_PER_SEC ? delay / 1000 * 1000 : delay / 100000 * 100000, text,
                        sizeof(text));
        if (done->result != RESULT_SUCCESS)
                controller_log(watch->controller, LOG_WARNING, MESSAGE_ID_FINALIZER_FAILED, fields,
                               "our finalizer cannot be %s %s of watch %s: %s; next attempt in %s",
                               watch->config->finalizer ? "put on" : "taken off", done->key, done->watch,
                               done->message, text);
        else if (lost)
                controller_log(watch->controller, LOG_WARNING, MESSAGE_ID_FINALIZER_RESTORED, fields,
                               "%s of watch %s had lost our finalizer, though it is not being deleted: the "
                               "finalizer was put on again; after another loss it is put on after %s",
                               done->key, done->watch, text);
        else
                controller_log(watch->controller, LOG_DEBUG, NULL, fields,
                               "our finalizer was %s %s of watch %s",
                               watch->config->finalizer ? "put on" : "taken off", done->key, done->watch);
}

/* Whether it went, or left the watch, while this was tried: nobody would forget the tries any more. */
static bool has_ended(const struct watch *watch, const struct queue_run *run)
{
        const struct ledger_row *row;
        int r = ledger_look(watch->controller->ledger, watch->config->name, run->key, run->uid, &row);

        return r == -ENOENT || (r >= 0 && (row->deleting || row->unselected));
}

static int judge_finalizer_run(struct watch *watch, const struct queue_run *run,
                               const struct message_done *done, struct queue_outcome *outcome)
{
        bool lost = run->reason == RUN_FINALIZER_LOST;
        int r = 0;

        outcome->reason = run->reason;
        switch (done->result) {
        case RESULT_SUCCESS:
                watch->finalizers_written++;
                refusal_written(watch, done->key);
                recover(watch);
                if (lost)
                        r = note_try(watch, run->key, run->uid, &outcome->delay_usec);
                log_finalizer_failure(watch, done, lost, outcome->delay_usec);
                outcome->handled = true;
                break;
        case RESULT_STALE:
                mark_drop(&watch->tries, run->key, run->uid); /* its end was announced before */
                outcome->handled = true;
                break;
        case RESULT_UNNEEDED:
                outcome->handled = true;
                break;
        case RESULT_BEHIND:
                outcome->delay_usec = BEHIND_USEC;
                break;
        case RESULT_CANCELLED:
                break;
        case RESULT_CONFLICT: /* the newest version is on its way */
                r = note_try(watch, run->key, run->uid, &outcome->delay_usec);
                break;
        case RESULT_UNAVAILABLE:
                if (done->held_usec > 0) { /* no failure: the server has said when */
                        outcome->delay_usec = held_delay(watch->controller, done->held_usec);
                        break;
                }
                /* fall through */
        default:
                watch->finalizers_failed++;
                r = note_try(watch, run->key, run->uid, &outcome->delay_usec);
                if (r >= 0 && done->result == RESULT_FORBIDDEN)
                        r = watch_refused(watch, done, &outcome->delay_usec);
                if (r > 0 && !watch->controller->is_ending)
                        refusal_fatal(watch);
                log_finalizer_failure(watch, done, lost, outcome->delay_usec);
        }
        return r;
}

int finalizer_ended(struct controller *controller, const struct assignment *given,
                    const struct message_done *done)
{
        const struct queue_run *run = &given->run;
        struct queue_outcome outcome = {0};
        int r = judge_finalizer_run(&controller->watch[run->watch], run, done, &outcome), written;

        if (r < 0)
                return r;
        if (has_ended(&controller->watch[run->watch], run)) {
                mark_drop(&controller->watch[run->watch].tries, run->key, run->uid);
                outcome.handled = true;
        }
        written = given->is_first ? ledger_remove(controller->ledger, done->watch, run->key, run->uid)
                                  : note_finalizer_write(controller, given, done);
        if (written < 0) {
                ledger_failed(controller, written);
                return 0;
        }
        return queue_done(controller->queue, run->id, &outcome, controller->now.boottime);
}
