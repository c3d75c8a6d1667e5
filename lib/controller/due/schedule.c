/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/due/schedule.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/duration.h"
#include "controller/due/push.h"
#include "controller/effects.h"
#include "ipc/message-id.h"

#define IN_TIME_USEC  USEC_PER_MINUTE     /* a run that begins within this time has not missed its own */
#define SET_USEC      USEC_PER_SEC        /* a clock that moves by as much was set */
#define SET_BACK_USEC (3 * USEC_PER_HOUR) /* set back by no more, it repeats no run */
#define ROWS_MAX      16                  /* of the one object; others of its name may not be gone yet */

static bool is_planned(const struct ledger_row *row)
{
        return row->next_reason == RUN_SCHEDULED && row->next_realtime > 0;
}

/* A time of day in the row's own clock. */
static uint64_t moment_of(const struct watch *watch, uint64_t realtime)
{
        uint64_t now = watch->controller->now.realtime;

        return ledger_time(watch->controller) + (realtime > now ? realtime - now : 0);
}

/* The next run is for the first time after this one. */
static void plan(const struct watch *watch, struct ledger_row *row, uint64_t after)
{
        uint64_t due = 0;

        assert(watch->config->own == OWN_SCHEDULE);
        if (cron_next(&watch->config->due, watch->config->time_zone, after, &due) < 0) {
                row->next_realtime = 0;
                row->next_reason = RUN_REASON_NONE;
                return;
        }
        row->scheduled_realtime = due;
        row->begun = false;
        row->next_realtime = moment_of(watch, due);
        row->next_reason = RUN_SCHEDULED;
}

/* A clock that was set back to before the last run says this all the same. */
static uint64_t not_before_served(const struct ledger_row *row, uint64_t realtime)
{
        uint64_t served = row->served_realtime;

        return served > realtime && served - realtime <= SET_BACK_USEC ? served : realtime;
}

static void plan_next(const struct watch *watch, struct ledger_row *row)
{
        plan(watch, row, not_before_served(row, watch->controller->now.realtime));
}

/* Once `startup` is over nothing makes it due before the next start: no other object, no reload, not what it asks for itself. */
static void plan_startup(const struct watch *watch, struct ledger_row *row)
{
        bool over = watch->controller->startup_over;

        row->next_realtime = over ? 0 : ledger_time(watch->controller);
        row->next_reason = over ? RUN_REASON_NONE : RUN_START;
}

static int keep(struct watch *watch, const struct ledger_row *row)
{
        return ledger_put(watch->controller->ledger, watch->config->name, row);
}

/* ---- inputs */

int schedule_found(struct watch *watch, const struct record_change *change, const struct ledger_row *row)
{
        struct ledger_row new = {0};
        int r;

        if (row)
                return 0;
        r = ledger_row_new(change->key, change->uid, &new);
        if (r < 0)
                return r;
        if (watch->config->own == OWN_STARTUP)
                plan_startup(watch, &new);
        else
                plan_next(watch, &new);
        r = keep(watch, &new);
        ledger_row_done(&new);
        return r;
}

static void startup_over(struct controller *controller)
{
        if (controller->startup_over)
                return;
        controller->startup_over = true;
        FOREACH_WATCH(watch, controller)
                pause_apply(watch);
}

/* `cron` may be another one than when that was planned, and the clock another one. What should have run by now has its turn in
 * schedule_take(). */
static int begin_row(const char *watch_name _unused_, const struct ledger_row *row, void *userdata)
{
        struct watch *watch = userdata;
        struct ledger_row begun = *row;

        if (watch->config->own == OWN_STARTUP) {
                plan_startup(watch, &begun);
        } else {
                if (row->next_realtime > 0 && !is_planned(row))
                        return 0;
                if (is_planned(row) && row->scheduled_realtime <= watch->controller->now.realtime)
                        begun.next_realtime = moment_of(watch, row->scheduled_realtime);
                else
                        plan_next(watch, &begun);
        }
        return keep(watch, &begun);
}

int schedule_begin(struct watch *watch)
{
        int r = ledger_visit(watch->controller->ledger, watch->config->name, "", "", ROWS_MAX, begin_row,
                             watch);

        return r < 0 ? r : 0;
}

static void tell_missed(struct watch *watch, const struct ledger_row *row)
{
        time_t seconds = (time_t)(row->scheduled_realtime / USEC_PER_SEC);
        char due[32] = "";
        struct tm date;

        if (gmtime_r(&seconds, &date))
                strftime(due, sizeof(due), "%Y-%m-%dT%H:%M:%SZ", &date);
        watch->metrics.missed++;
        controller_log(
                watch->controller, LOG_WARNING, MESSAGE_ID_SCHEDULE_MISSED,
                LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", row->key},
                           {"RECONCILED_UID", row->uid}),
                "schedule %s has missed its run of %s, which could not begin within a minute: it is left out (onMissed: skip)",
                watch->config->name, due);
}

static bool has_missed(const struct watch *watch, const struct ledger_row *row)
{
        uint64_t now = watch->controller->now.realtime, due = row->scheduled_realtime;

        return watch->config->on_missed == ON_MISSED_SKIP && now > due && now - due > IN_TIME_USEC;
}

/* Leaves a run out. If several of its times have passed, the last one may still be in time. */
static void leave_out(struct watch *watch, struct ledger_row *row)
{
        tell_missed(watch, row);
        plan(watch, row, watch->controller->now.realtime - IN_TIME_USEC);
}

bool schedule_take(struct watch *watch, struct ledger_row *row)
{
        assert(watch->config->own == OWN_SCHEDULE && row->next_reason == RUN_SCHEDULED);
        if (row->scheduled_realtime > watch->controller->now.realtime) {
                /* schedule_see_clock() has not seen that it was set back */
                row->next_realtime = moment_of(watch, row->scheduled_realtime);
                return false;
        }
        if (!has_missed(watch, row))
                return true;
        leave_out(watch, row);
        return false;
}

/* ---- runs */

/* Whatever failed before, a new time is a new beginning. The reason is that of a run that a crash cuts off. */
static void begin_time(struct ledger_row *row)
{
        if (row->next_reason == RUN_SCHEDULED) {
                row->next_reason = RUN_CANCELLED;
                row->attempts = row->refused = row->throttled = 0;
                row->permanent = false;
        }
        row->begun = true;
}

static void unbegin_time(struct ledger_row *row)
{
        row->begun = false;
        if (row->next_reason == RUN_CANCELLED)
                row->next_reason = RUN_SCHEDULED;
}

static bool is_by_hand(const struct ledger_row *row, enum run_reason reason)
{
        return reason == RUN_REQUESTED || row->next_reason == RUN_REQUESTED;
}

/* Since it was due, the run may have waited long for a worker, for `startup`, or for the end of a pause or an outage. */
static bool may_begin(struct watch *watch, struct ledger_row *row, enum run_reason reason, bool *ret_first)
{
        uint64_t now = watch->controller->now.realtime;

        if (is_planned(row) && reason == RUN_SCHEDULED && !schedule_take(watch, row))
                return false;
        if (!row->begun && row->scheduled_realtime > 0 && row->scheduled_realtime <= now) {
                if (!is_by_hand(row, reason) && has_missed(watch, row)) {
                        leave_out(watch, row);
                        return false;
                }
                begin_time(row);
                *ret_first = true;
        }
        row->served_realtime = not_before_served(row, now);
        return true;
}

int schedule_give(struct watch *watch, const struct queue_run *run, bool *ret_first)
{
        struct controller *controller = watch->controller;
        struct ledger_row row = {0};
        bool gives = true;
        int r = ledger_get(controller->ledger, watch->config->name, run->key, run->uid, &row);

        *ret_first = false;
        if (r == -ENOENT) /* its object has gone meanwhile */
                return 1;
        if (r >= 0 && !row.settling[0]) { /* else its handler has been asked before */
                gives = may_begin(watch, &row, run->reason, ret_first);
                controller->commit.due = true;
                r = keep(watch, &row);
        }
        ledger_row_done(&row);
        return r < 0 ? r : gives;
}

int schedule_returned(struct watch *watch, struct ledger_row *row)
{
        unbegin_time(row);
        return keep(watch, row);
}

/* A time that came while the run was under way is not served by it: it had begun before. */
static void plan_after_run(const struct watch *watch, struct ledger_row *row)
{
        uint64_t now = watch->controller->now.realtime, served = row->served_realtime;

        plan(watch, row, served > 0 && served <= now ? served : not_before_served(row, now));
}

/* What it asks for itself (requeueAfter), or a backoff, may come before its next time. */
static bool comes_first(const struct ledger_row *row, const struct ledger_row *next)
{
        return row->next_realtime > 0 &&
               (next->next_realtime == 0 || row->next_realtime <= next->next_realtime);
}

bool schedule_ended(struct watch *watch, struct ledger_row *row, const struct message_done *done, bool first)
{
        bool begins_later = first && !done->handler_ran; /* whatever it waits for */
        struct ledger_row next;

        if (watch->config->own == OWN_STARTUP && done->result == RESULT_SUCCESS) {
                startup_over(watch->controller);
                plan_startup(watch, row);
                return true;
        }
        if (watch->config->own != OWN_SCHEDULE || row->quarantined_until > 0 ||
            done->result == RESULT_SETTLING)
                return false;
        if (begins_later)
                row->begun = false;
        next = *row;
        if (begins_later && has_missed(watch, row)) {
                leave_out(watch, &next);
        } else {
                plan_after_run(watch, &next);
                if (comes_first(row, &next))
                        return false;
        }
        row->scheduled_realtime = next.scheduled_realtime;
        row->begun = next.begun;
        row->next_realtime = next.next_realtime;
        row->next_reason = next.next_reason;
        return true;
}

/* ---- the clock */

struct step {
        struct watch *watch;
        bool is_small; /* backwards: what was planned stays planned */
};

static int move_row(const char *watch_name _unused_, const struct ledger_row *row, void *userdata)
{
        const struct step *step = userdata;
        struct ledger_row moved = *row;

        if (!is_planned(row))
                return 0;
        if (step->is_small || row->scheduled_realtime <= step->watch->controller->now.realtime)
                moved.next_realtime = moment_of(step->watch, row->scheduled_realtime);
        else
                plan_next(step->watch, &moved);
        return keep(step->watch, &moved);
}

bool schedule_see_clock(struct controller *controller)
{
        int64_t ahead = (int64_t)(controller->now.realtime - controller->now.boottime),
                step = ahead - controller->clock_ahead;
        int r = 0;

        if (llabs(step) < (int64_t)SET_USEC)
                return false;
        controller->clock_ahead = ahead;
        FOREACH_WATCH(watch, controller)
                if (watch->config->own == OWN_SCHEDULE && watch->synced && r >= 0)
                        r = ledger_visit(controller->ledger, watch->config->name, "", "", ROWS_MAX, move_row,
                                         &(struct step){watch, step < 0 && step >= -(int64_t)SET_BACK_USEC});
        if (r < 0)
                ledger_failed(controller, r);
        return true;
}
