/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which worker gets which run. A worker has one handler at work at a time, in the order in which it was given its
 * runs. Where handlers are short, it is given some runs at once, so that it finds the next one without waiting for
 * us, and we are woken for many ends instead of each. What it was given counts as running: nobody else gets the key.
 * What must never happen: a run that waits for long behind another one's handler while somebody else could do it. So
 * they are few, expected to be over soon by what the last ones of their watches took, and should one take longer all the
 * same, the worker gives those after it back (RESULT_RETURNED) and they are the first of their line.
 *
 * A run that waits for the API server, before its handler or after it (ANSWERED), holds nobody up. There are up to `window` of them
 * in a worker, and they end in any order.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "controller/due/assigned.h"
#include "controller/due/doubt.h"
#include "controller/due/due.h"
#include "controller/due/schedule.h"
#include "controller/effects.h"
#include "controller/run/assign.h"
#include "controller/run/twin.h"
#include "ipc/run-reason.h"
#include "object/identity.h"
#include "queue/look.h"

#define AHEAD_USEC (3 * USEC_PER_MSEC)

/* ---- what a worker has */

static bool is_available(const struct worker *worker)
{
        return worker->is_up;
}

/* With a window of one run after the other, the others wait in the worker. */
static bool window_is_open(const struct worker *worker)
{
        unsigned window = worker->controller->config->window;

        return worker->given_count < (window > 1 ? window : RUNS_AT_ONCE);
}

static bool worker_has_room(const struct worker *worker)
{
        size_t count = worker_busy_with(worker);

        return window_is_open(worker) &&
               (count == 0 || (count < RUNS_AT_ONCE && worker->expected_usec < AHEAD_USEC));
}

/* Many at once, then none for a while: the runs of one turn are one commit of the ledger. When one worker needs
 * runs, all workers get as many as they have room for. */
static bool runs_low(const struct worker *worker)
{
        return worker_busy_with(worker) <= RUNS_AT_ONCE / 2 && worker->expected_usec <= AHEAD_USEC / 2;
}

/* A long run, whatever was expected: runs that are put after it come back, and would be put there again and
 * again. */
static bool is_late(const struct worker *worker, uint64_t now)
{
        return worker_busy_with(worker) > 0 && now - worker->started_boottime > AHEAD_USEC;
}

static bool may_have_more(const struct worker *worker, uint64_t now)
{
        return is_available(worker) && window_is_open(worker) &&
               (worker_busy_with(worker) == 0 || (runs_low(worker) && !is_late(worker, now)));
}

/* For a watch without measurements: as long as what is given at once. */
static uint64_t expected_usec(const struct watch *watch)
{
        return watch->pace_known ? watch->pace_usec : AHEAD_USEC;
}

/* The worker's own figure: until we read the message, others may have had the processor. */
static void note_pace(struct watch *watch, uint64_t took_usec)
{
        watch->pace_usec = watch->pace_known ? (3 * watch->pace_usec + took_usec) / 4 : took_usec;
        watch->pace_known = true;
}

/* The worker is done with this handler, and at the next one. */
static void handler_over(struct worker *worker, const struct assignment *given)
{
        assert(given->expected_usec <= worker->expected_usec);
        if (&given->run == worker_run(worker))
                worker->started_boottime = worker->controller->now.boottime;
        worker->expected_usec -= given->expected_usec;
}

static void step_aside(struct worker *worker, struct assignment *given)
{
        handler_over(worker, given);
        given->aside = true;
        worker->aside_count++;
}

/* Its handler is at work, whatever else the worker was given meanwhile. */
static void step_back(struct worker *worker, struct assignment *given)
{
        given->aside = false;
        worker->aside_count--;
        worker->expected_usec += given->expected_usec;
        if (&given->run == worker_run(worker))
                worker->started_boottime = worker->controller->now.boottime;
}

static void drop_assignment(struct worker *worker, struct assignment *given, bool has_begun)
{
        struct controller *controller = worker->controller;
        size_t index = (size_t)(given - worker->given);

        if (!given->to_send && controller->effects->ended(controller->userdata, worker, given, has_begun))
                controller->commit.due = true;
        if (given->aside)
                worker->aside_count--;
        else
                handler_over(worker, given);
        worker->given_count--;
        memmove(given, given + 1, (worker->given_count - index) * sizeof(*given));
}

/* The run that was sent to the worker under this number. NULL: it was sent none, so it lies. */
static struct assignment *find_given(struct worker *worker, uint64_t sequence)
{
        for (size_t i = 0; i < worker->given_count; i++)
                if (worker->given[i].run.id == sequence && !worker->given[i].to_send)
                        return &worker->given[i];
        return NULL;
}

/* The worker's own figure, but not more than that. */
static uint64_t at_most_since(const struct worker *worker, const struct assignment *given, uint64_t usec)
{
        uint64_t most = worker->controller->now.boottime - given->since;

        return usec < most ? usec : most;
}

/* Accepts only new answers that do not contradict themselves. */
static bool says_something(const struct assignment *given, const struct message_answered *answered)
{
        if (answered->waits && !answered->answered)
                return !given->aside || given->first_of_watch != answered->first_of_watch;
        return answered->waits == answered->answered && !answered->first_of_watch &&
               (answered->answered || given->aside);
}

int assign_answered(struct worker *worker, const struct message_answered *answered)
{
        struct assignment *given = find_given(worker, answered->sequence);
        struct controller *controller = worker->controller;

        if (!given || given->answered || !says_something(given, answered) || controller->config->window <= 1)
                return -EPROTO;
        if (answered->waits && !given->aside)
                step_aside(worker, given);
        if (!answered->waits)
                step_back(worker, given);
        given->first_of_watch = answered->first_of_watch;
        if (answered->answered) {
                note_pace(&controller->watch[given->run.watch],
                          at_most_since(worker, given, answered->busy_usec));
                given->answered = true;
                queue_answered(controller->queue, given->run.id);
        }
        controller_settle_soon(controller);
        return 0;
}

int assign_take(struct worker *worker, const struct message_done *done, struct assignment *ret)
{
        const struct controller *controller = worker->controller;
        struct assignment *given = find_given(worker, done->sequence);
        bool returned = done->result == RESULT_RETURNED;
        const struct queue_run *run;

        if (!given || done->result >= RESULT_COUNT || (returned && given->answered))
                return -EPROTO;
        run = &given->run;
        if (strcmp(done->watch, controller->watch[run->watch].config->name) != 0 ||
            strcmp(done->key, run->key) != 0 || strcmp(done->uid, run->uid) != 0)
                return -EPROTO;
        given->took_usec = at_most_since(worker, given, done->duration_usec);
        *ret = *given;
        if (!returned) {
                controller->watch[run->watch].credit_runs++;
                if (!given->answered)
                        note_pace(&controller->watch[run->watch],
                                  at_most_since(worker, given, done->busy_usec));
                histogram_add(&controller->watch[run->watch].metrics.queue, run->waited_usec);
        }
        drop_assignment(worker, given, !returned);
        return 0;
}

bool assign_take_unsent(struct controller *controller, struct assignment *ret)
{
        FOREACH_ARRAY(worker, controller->worker, controller->worker_count)
                FOREACH_ARRAY(given, worker->given, worker->given_count) {
                        const struct watch *watch = &controller->watch[given->run.watch];

                        if (!given->to_send ||
                            !(given->is_cancelled || watch->paused_realtime || controller->uninstall.active))
                                continue;
                        *ret = *given;
                        drop_assignment(worker, given, false);
                        return true;
                }
        return false;
}

struct queue_counts assign_count(const struct controller *controller, const struct watch *watch)
{
        struct queue_counts counts = watch ? queue_count(controller->queue, watch_number(watch))
                                           : queue_count_all(controller->queue);
        size_t given = counts.running;

        counts.running = 0;
        FOREACH_ARRAY(worker, controller->worker, controller->worker_count)
                for (size_t j = 0; j < worker->given_count; j++)
                        counts.running += assignment_has_begun(worker, &worker->given[j]) &&
                                          (!watch || worker->given[j].run.watch == watch_number(watch));
        assert(counts.running <= given);
        counts.queued += given - counts.running;
        return counts;
}

/* ---- giving */

bool assign_may(const struct controller *controller)
{
        uint64_t now = controller->now.boottime;

        if (controller->is_ending || !controller->has_credential)
                return false;
        for (size_t i = 0; i < controller->worker_count; i++)
                if (may_have_more(&controller->worker[i], now))
                        return true;
        return false;
}

static bool gets_some(const struct worker *worker)
{
        return worker->filling && is_available(worker) && worker_has_room(worker);
}

/* One that waits for its process there comes first. */
static bool takes_none_of(const struct worker *worker, unsigned watch)
{
        if (worker->aside_count > 0)
                FOREACH_ARRAY(given, worker->given, worker->given_count)
                        if (given->first_of_watch && given->run.watch == watch)
                                return true;
        return false;
}

/* The worker with the least work of those that get runs in this turn, and runs of this watch (NULL: of any). */
static struct worker *next_worker(const struct controller *controller, const unsigned *watch)
{
        struct worker *found = NULL;

        FOREACH_ARRAY(worker, controller->worker, controller->worker_count)
                if (gets_some(worker) && !(watch && takes_none_of(worker, *watch)) &&
                    (!found || worker_busy_with(worker) < worker_busy_with(found)))
                        found = worker;
        return found;
}

static bool may_be_given(const void *userdata, unsigned watch)
{
        return next_worker(userdata, &watch);
}

static int give(struct worker *worker, const struct queue_run *run, bool is_first_of_time, uint64_t now)
{
        struct controller *controller = worker->controller;
        struct watch *watch = &controller->watch[run->watch];
        struct assignment *given = &worker->given[worker->given_count];
        int r;

        assert(worker->is_up && worker->given_count < ELEMENTS(worker->given));
        worker->given_count++;
        *given = (struct assignment){.run = *run,
                                     .to_send = true,
                                     .is_first_of_time = is_first_of_time,
                                     .since = now,
                                     .reloads = controller->reloads,
                                     .epoch = watch->epoch,
                                     .expected_usec = expected_usec(watch)};
        if (worker_busy_with(worker) == 1)
                worker->started_boottime = now;
        worker->expected_usec += given->expected_usec;
        r = ledger_owe(controller->ledger, watch->config->name, run->key, run->uid);
        given->is_first = r > 0;
        controller->commit.due = controller->commit.due || given->is_first;
        return r < 0 ? r : 0;
}

/* Drops the run: its row has the time when it is due. */
static int drop_run(struct controller *controller, const struct queue_run *run, uint64_t now)
{
        const struct queue_outcome dropped = {.handled = true};

        queue_handler_ran(controller->queue, run->watch, run->id, false, now);
        due_arm(controller);
        return queue_done(controller->queue, run->id, &dropped, now);
}

static int give_or_drop(struct controller *controller, const struct queue_run *run, uint64_t now)
{
        struct watch *watch = &controller->watch[run->watch];
        bool is_first = false;
        int r = watch->config->own == OWN_SCHEDULE ? schedule_give(watch, run, &is_first) : 1;

        if (r <= 0)
                return r < 0 ? r : drop_run(controller, run, now);
        return give(next_worker(controller, &run->watch), run, is_first, now);
}

struct worker *assign_next(struct controller *controller)
{
        uint64_t now = controller->now.boottime;

        if (!assign_may(controller))
                return NULL;
        FOREACH_ARRAY(worker, controller->worker, controller->worker_count)
                worker->filling |= is_available(worker) && !is_late(worker, now); /* or not sent yet */
        return next_worker(controller, NULL);
}

int assign_runs(struct controller *controller)
{
        struct worker *worker = assign_next(controller);
        uint64_t now = controller->now.boottime;
        struct queue_run run;
        int r = 0;

        while (r >= 0 && worker && queue_next_for(controller->queue, now, may_be_given, controller, &run)) {
                r = give_or_drop(controller, &run, now);
                worker = next_worker(controller, NULL);
        }
        return r;
}

/* ---- sending */

static enum run_action action_of_run(const struct queue_run *run)
{
        enum change_kind kind = run->kind;

        if (run->reason == RUN_RELEASE || run->reason == RUN_UNINSTALL)
                return ACTION_RELEASE;
        if (finalizer_is_reason(run->reason))
                return ACTION_FINALIZER;
        return kind == CHANGE_DELETED      ? ACTION_DELETED
               : kind == CHANGE_UNSELECTED ? ACTION_UNSELECTED
                                           : ACTION_RECONCILE;
}

static bool owned_is_degraded(const struct watch *parent)
{
        FOREACH_WATCH(watch, parent->controller)
                if (watch->config->owner && !watch->config->is_related && watch->health != WATCH_HEALTHY &&
                    watch->health != WATCH_ABSENT && strcmp(watch->config->owner, parent->config->name) == 0)
                        return true;
        return false;
}

static void send_run(struct worker *worker, struct assignment *given)
{
        struct controller *controller = worker->controller;
        const struct watch *watch = &controller->watch[given->run.watch];
        const struct ledger_row *row = NULL;
        bool has_left = given->run.kind == CHANGE_UNSELECTED;
        char newest[TWIN_VERSION_SIZE] = "";
        struct message_run run = {
                .sequence = given->run.id,
                .watch = watch->config->name,
                .key = given->run.key,
                .uid = given->run.uid,
                .action = action_of_run(&given->run),
                .reason = given->run.reason,
                .generation = watch->generation,
                .doubtful = doubt_is(watch, given->run.key, given->run.uid),
                .twin_doubtful = twin_is_doubtful(watch, given->run.key, given->run.uid),
                .handed_out = !given->is_first,
                .behind = given->run.behind,
                .alone = queue_is_alone(controller->queue, given->run.id),
                .owned_degraded = owned_is_degraded(watch),
                /* If the row was lost, it is unknown what we have written (object/child-kinds.h). */
                .kinds = controller->ledger_lost && given->is_first ? "?" : "",
                .taken = has_left && twin_owes(watch, given->run.key, given->run.uid),
        };

        twin_written(watch, run.key, run.uid, newest); /* before the row is looked at, which is borrowed */
        run.at_least_version = newest;
        /* A worker sees no object for the first time before the disk knows of it. One that was held back was in a commit before. */
        assert(given->to_send &&
               !(given->is_first && given->named == 0 && ledger_dirty(controller->ledger)));
        if (!given->is_first &&
            ledger_look(controller->ledger, watch->config->name, run.key, run.uid, &row) >= 0) {
                run.attempt =
                        row->permanent
                                ? 0
                                : row->attempts - row->refused; /* given up, and changed: it begins again */
                run.last_error = row->last_error;
                run.first_error = row->first_error;
                run.settling = row->settling;
                run.known_fingerprint = row->attempts == 0 && !row->permanent ? row->fingerprint : 0;
                run.known_related = row->related;
                run.previous_version = row->previous_version;
                run.kinds = row->kinds;
                if (row->written_realtime > watch->epoch_since &&
                    resource_version_number(row->written_version) >= resource_version_number(newest))
                        run.at_least_version = row->written_version;
        }
        /* It left, and its end is owed all the same (outcome.c). */
        if (run.action == ACTION_UNSELECTED && row && row->deleting)
                run.action = ACTION_DELETED;
        given->attempt = ++run.attempt;
        given->to_send = false;
        controller->effects->run(controller->userdata, worker, given, &run);
}

static bool has_place_for_unsent(const struct worker *worker)
{
        size_t count = worker_busy_with(worker);

        return count == 0 || (count < RUNS_AT_ONCE && worker->expected_usec < AHEAD_USEC &&
                              !is_late(worker, worker->controller->now.boottime));
}

/* One that may not is aside: it holds nobody up, so that many can be reported at once. */
static bool leaves_now(struct worker *worker, struct assignment *given)
{
        const struct controller *controller = worker->controller;

        if (!controller->effects->may_leave(controller->userdata, given)) {
                if (!given->aside && controller->config->window > 1)
                        step_aside(worker, given);
                return false;
        }
        if (given->aside && !has_place_for_unsent(worker))
                return false;
        if (given->aside)
                step_back(worker, given);
        return true;
}

void assign_send(struct controller *controller)
{
        const struct controller_effects *effects = controller->effects;

        FOREACH_ARRAY(worker, controller->worker, controller->worker_count) {
                if (!worker->filling || !worker->is_up)
                        continue;
                worker->filling = false;
                effects->batch(controller->userdata, worker, true);
                FOREACH_ARRAY(given, worker->given, worker->given_count) {
                        if (!given->to_send)
                                continue;
                        if (leaves_now(worker, given))
                                send_run(worker, given);
                        else
                                worker->filling = true;
                }
                effects->batch(controller->userdata, worker, false);
        }
}
