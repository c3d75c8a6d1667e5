/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers: what they have of runs that have not begun, as worker/waiting.c has it, and what the real order of a run
 * (real-worker.h) asks for: the store, the server, the handler. A run begins in one step, and goes on in another one when its handler
 * has ended. What others do in between is for the other steps. Where the server is slow, each request is a step, too.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/simulation.h"

static struct simulation *simulated; /* the one that goes on now: the runs have no other way to it */

static void run_done(struct sim_run *run)
{
        message_free(run->message);
        *run = (struct sim_run){0};
}

static int copy(enum message_type type, const void *fields, struct message **ret)
{
        _cleanup_text_ struct text packet = TEXT_EMPTY;
        int r = message_encode(type, fields, &packet);

        return r < 0 ? r : message_decode(packet.data, packet.size, ret);
}

static void say(struct simulation *sim, unsigned worker, const struct sim_word *word)
{
        struct sim_worker *from = &sim->worker[worker];

        if (from->done_count == INBOX_MAX)
                abort();
        from->done[(from->done_first + from->done_count++) % INBOX_MAX] = *word;
}

/* One that is not overtaken by others of its watch. */
static bool is_held_back(const struct sim_worker *worker, const struct sim_run *run)
{
        for (const struct sim_run *other = worker->inbox; other < run; other++)
                if (other->first_of_watch && other->watch == run->watch)
                        return true;
        return false;
}

void worker_take(struct simulation *sim, unsigned worker, const struct message_run *run, unsigned watch)
{
        struct sim_worker *into = &sim->worker[worker];
        struct sim_run *taken = &into->inbox[into->inbox_count++];

        *taken = (struct sim_run){
                .active = true,
                .watch = watch,
                .name = sim_name_number(run->key),
                .uid = sim_uid_number(run->uid),
        };
        for (const struct sim_run *other = into->inbox; other < taken; other++)
                if (other->first_of_watch && other->heard && other->watch == watch)
                        model_broken(sim, "worker %u gets %s while a run of its watch has the next turn",
                                     worker, run->key);
        if (copy(MESSAGE_RUN, run, &taken->message) < 0)
                abort();
        taken->order = &taken->message->run;
}

static void say_done(struct simulation *sim, unsigned worker, const struct sim_run *run,
                     const struct message_done *done)
{
        struct sim_word word = {.is_end = true};

        sim_tell(sim, "worker %u: %s of %s %s for watch %u ends: %s", worker,
                 run_action_name((enum run_action)done->action), done->key, done->uid, run->watch,
                 run_result_name((enum run_result)done->result));
        if (run->begun)
                model_run_ends(sim, run->name);
        if (!done->handler_ran)
                model_returned(sim, run->watch, run->uid);
        if (copy(MESSAGE_DONE, done, &word.done) < 0)
                abort();
        say(sim, worker, &word);
}

/* It has not begun. */
static void say_returned(struct simulation *sim, unsigned worker, struct sim_run *run)
{
        const struct message_done done = {
                .sequence = run->order->sequence,
                .action = run->order->action,
                .watch = run->order->watch,
                .key = run->order->key,
                .uid = run->order->uid,
                .result = RESULT_RETURNED,
        };

        say_done(sim, worker, run, &done);
        run_done(run);
}

void worker_recall(struct simulation *sim, unsigned worker)
{
        struct sim_worker *from = &sim->worker[worker];

        while (from->inbox_count > 0)
                say_returned(sim, worker, &from->inbox[--from->inbox_count]);
}

/* ---- runs that have begun */

#define BEGUN_MAX (1 + SIM_WRITING)

static struct sim_run *begun(struct sim_worker *worker, unsigned index)
{
        return index == 0 ? &worker->current : &worker->writing[index - 1];
}

static struct sim_run *find_run(struct simulation *sim, uint64_t sequence, unsigned *ret_worker)
{
        for (unsigned i = 0; i < WORKERS; i++)
                for (unsigned j = 0; j < BEGUN_MAX; j++) {
                        struct sim_run *run = begun(&sim->worker[i], j);

                        *ret_worker = i;
                        if (run->active && run->order->sequence == sequence)
                                return run;
                }
        abort();
}

static void cancel(struct simulation *sim, unsigned worker, struct sim_run *run)
{
        run->cancelled = true;
        real_run_cancel(sim->worker[worker].real, run->order, false);
}

void worker_cancel(struct simulation *sim, unsigned worker, uint64_t sequence)
{
        struct sim_worker *from = &sim->worker[worker];
        struct sim_run waiting;

        for (unsigned i = 0; i < BEGUN_MAX; i++)
                if (begun(from, i)->active && begun(from, i)->order->sequence == sequence)
                        cancel(sim, worker, begun(from, i));
        for (size_t i = 0; i < from->inbox_count; i++) {
                if (from->inbox[i].order->sequence != sequence)
                        continue;
                waiting = from->inbox[i];
                from->inbox_count--;
                memmove(&from->inbox[i], &from->inbox[i + 1],
                        (from->inbox_count - i) * sizeof(from->inbox[0]));
                say_returned(sim, worker, &waiting);
                return;
        }
}

/* ---- what a run asks for (real-worker.h) */

void simulation_goes_on(struct simulation *sim)
{
        simulated = sim;
}

uint64_t sim_time(bool realtime)
{
        return realtime ? simulated->realtime : simulated->boottime;
}

void sim_log(const char *text)
{
        sim_tell(simulated, "log of a worker: %s", text);
}

uint64_t sim_trigger(const char *json)
{
        const struct sim_object object = server_parse(json);

        return sim_fingerprint(&object);
}

static struct sim_store *store_of(const struct config_watch *watch)
{
        return &simulated->watcher[watch - simulated->config_watch].store;
}

bool sim_read_store(const struct config_watch *watch, const char *key, struct sim_read *ret)
{
        unsigned name = sim_name_number(key);
        const struct sim_stored *stored = &store_of(watch)->stored[name];

        if (!stored->exists)
                return false;
        sim_uid(stored->object.uid, ret->uid);
        snprintf(ret->version, sizeof(ret->version), "%llu", (unsigned long long)stored->object.version);
        server_print(simulated, name, &stored->object, ret->json);
        ret->fingerprint = stored->fingerprint;
        ret->held = stored->held;
        return true;
}

bool sim_read_tombstone(const struct config_watch *watch, const char *key, const char *uid,
                        struct sim_read *ret)
{
        const struct sim_store *store = store_of(watch);

        for (size_t i = 0; i < store->tombstone_count; i++)
                if (store->tombstone[i].name == sim_name_number(key) &&
                    store->tombstone[i].uid == sim_uid_number(uid)) {
                        snprintf(ret->uid, sizeof(ret->uid), "%s", uid);
                        ret->held = store->tombstone[i].held;
                        return true;
                }
        return false;
}

bool sim_server_is_slow(void)
{
        return simulated->is_slow;
}

void sim_serve(const struct message_run *order, const char *method, bool of_status _unused_,
               const char *body, struct sim_reply *ret)
{
        unsigned worker;
        struct sim_run *run = find_run(simulated, order->sequence, &worker);

        if (run->refused)
                ret->http_status = run->refused;
        else
                server_answer(simulated, run->name, method, body, ret);
        if (run->loses_answer)
                ret->http_status = 0;
        else if (ret->http_status == 200 && strcmp(method, "PATCH") == 0)
                model_wrote(simulated, run->watch, run->uid, server_parse(ret->json).version);
        run->refused = 0;
        run->loses_answer = false;
}

static enum model_kind kind_of(enum run_action action)
{
        return action == ACTION_FINALIZE     ? MODEL_FINALIZE
               : action == ACTION_DELETED    ? MODEL_DELETED
               : action == ACTION_UNSELECTED ? MODEL_UNSELECTED
                                             : MODEL_RECONCILE;
}

void sim_show(const struct message_run *order, enum run_action action, const char *json)
{
        unsigned worker;
        struct sim_run *run = find_run(simulated, order->sequence, &worker);
        struct sim_object object = server_parse(json);

        object.deleting = object.deleting || order->action == ACTION_DELETED;
        run->handler_ran = true;
        run->action = action;
        if (object.uid != run->uid)
                model_broken(simulated, "the handler of %s u%u is shown u%u", order->key, run->uid,
                             object.uid);
        if (order->reason == RUN_TAKEN_OVER || order->reason == RUN_SELECTED) /* it had left meanwhile */
                model_heard(simulated, run->watch, run->uid, 0, false);
        model_shown(simulated, run->watch, run->name, run->uid, kind_of(action), sim_fingerprint(&object),
                    object.version);
}

static unsigned selected_now(struct simulation *sim, const struct sim_run *run)
{
        const struct sim_object *object = server_object(sim, run->name, run->uid);

        return object ? object->selected : 0;
}

void sim_done(const struct message_done *done)
{
        struct simulation *sim = simulated;
        enum run_result result = done->result;
        unsigned worker;
        struct sim_run *run = find_run(sim, done->sequence, &worker);

        if (done->handler_ran)
                model_answered(sim, run->watch, run->uid, kind_of(done->action),
                               result == RESULT_SUCCESS || result == RESULT_SETTLING,
                               result == RESULT_RETRY || result == RESULT_PERMANENT,
                               result == RESULT_UNRECOVERABLE, result == RESULT_PERMANENT);
        if (run->order->action == ACTION_UNSELECTED && result == RESULT_SUCCESS) {
                model_left(sim, run->watch, run->uid, selected_now(sim, run));
                model_wrote(sim, run->watch, run->uid, 0); /* nobody knows anything of it any more */
        }
        if (done->handler_ran)
                model_requeued(sim, run->watch, run->uid, done->requeue_after_usec);
        say_done(sim, worker, run, done);
        message_free(sim->worker[worker].over);
        sim->worker[worker].over = run->message; /* the run looks at it until its fiber is over */
        run->message = NULL;
        run_done(run);
}

/* ---- steps */

/* One that waits for nobody; else the first that stands aside, whose turn comes then. NULL: there is none. */
static struct sim_run *next_to_begin(struct sim_worker *worker)
{
        for (size_t i = 0; i < worker->inbox_count; i++)
                if (!worker->inbox[i].aside && !is_held_back(worker, &worker->inbox[i]))
                        return &worker->inbox[i];
        return worker->inbox_count > 0 ? &worker->inbox[0] : NULL;
}

bool worker_begin(struct simulation *sim, unsigned worker)
{
        struct sim_worker *from = &sim->worker[worker];
        struct sim_run *run = &from->current, *next = run->active ? NULL : next_to_begin(from);
        const struct sim_object *object;

        if (!next || (next->aside && !sim->is_calm && sim->steps % 4 > 0)) /* what it waits for takes long */
                return false;
        *run = *next;
        from->inbox_count--;
        memmove(next, next + 1, (from->inbox_count - (size_t)(next - from->inbox)) * sizeof(*next));
        if (run->aside)
                say(sim, worker, &(struct sim_word){.answered.sequence = run->order->sequence});
        run->aside = run->first_of_watch = false;
        run->begun = true;
        sim_tell(sim, "worker %u: begins %s of %s u%u for watch %u (%s)", worker,
                 run_action_name(run->order->action), sim_key(run->name), run->uid, run->watch,
                 run_reason_name((enum run_reason)run->order->reason));
        model_run_begins(sim, worker, run->watch, run->name, run->uid);
        if (run->order->action == ACTION_UNSELECTED)
                model_forgives(sim, run->watch, run->uid); /* what failed is over */
        object = server_object(sim, run->name, run->uid);
        if (run->order->action == ACTION_RELEASE && object && object->deleting)
                model_released(sim, run->watch, run->uid);
        if (real_run_begin(from->real, run->order) < 0)
                model_broken(sim, "a run cannot begin");
        return true;
}

static enum run_result failure_of(unsigned argument)
{
        static const enum run_result failure[] = {RESULT_RETRY,     RESULT_RETRY,
                                                  RESULT_PERMANENT, RESULT_UNAVAILABLE,
                                                  RESULT_FORBIDDEN, RESULT_UNRECOVERABLE};

        return failure[argument % ELEMENTS(failure)];
}

/* The handler fails, or what it answers is refused. */
static void fail(struct simulation *sim, unsigned worker, struct sim_run *run, enum run_result failure)
{
        char text[64];

        run->refused = failure == RESULT_UNAVAILABLE     ? 503
                       : failure == RESULT_FORBIDDEN     ? 401
                       : failure == RESULT_UNRECOVERABLE ? 422
                                                         : 0;
        if (!run->refused || run->order->action == ACTION_DELETED)
                snprintf(text, sizeof(text), "{\"error\":\"it fails\"%s}",
                         failure == RESULT_PERMANENT ? ",\"permanent\":true" : "");
        else
                snprintf(text, sizeof(text), "{\"status\":{\"n\":%u}}", ++sim->texts);
        real_run_answer(sim->worker[worker].real, run->order, text);
}

/* It writes a status, or a patch, which fits only what it was shown; or nothing. */
static void succeed(struct simulation *sim, unsigned worker, const struct sim_run *run, const char *again,
                    unsigned argument)
{
        char text[128] = "{}", requeue[32] = "";

        if (run->action == ACTION_RECONCILE && again[0])
                snprintf(requeue, sizeof(requeue), ",\"requeueAfter\":\"%s\"", again);
        if (run->action == ACTION_RECONCILE)
                snprintf(text, sizeof(text),
                         argument % 2 == 0 ? "{\"message\":\"done %u\"%s}"
                         : argument % 4 == 1
                                 ? "{\"status\":{\"n\":%u}%s}"
                                 : "{\"patch\":{\"metadata\":{\"annotations\":{\"note\":\"%u\"}}}%s}",
                         ++sim->texts, requeue);
        real_run_answer(sim->worker[worker].real, run->order, text);
}

static bool end(struct simulation *sim, unsigned worker, struct sim_run *run, unsigned argument)
{
        bool fails = !sim->is_calm && argument % 3 == 0, asks = !sim->is_calm && argument % 16 == 5;

        if (!run->active || real_run_waits(sim->worker[worker].real, run->order) != REAL_WAITS_FOR_HANDLER)
                return false;
        argument /= 16;
        if (run->cancelled)
                real_run_answer(sim->worker[worker].real, run->order, NULL);
        else if (fails)
                fail(sim, worker, run, failure_of(argument));
        else
                succeed(sim, worker, run, !asks ? "" : argument % 2 ? "70s" : "30s", argument);
        return true;
}

bool worker_end(struct simulation *sim, unsigned worker, unsigned argument)
{
        return end(sim, worker, &sim->worker[worker].current, argument);
}

bool worker_write(struct simulation *sim, unsigned worker, unsigned argument)
{
        return end(sim, worker, &sim->worker[worker].writing[argument % SIM_WRITING],
                   argument / SIM_WRITING);
}

static void serve(struct simulation *sim, unsigned worker, struct sim_run *run, unsigned how)
{
        if (how == 0 && !sim->is_calm)
                run->refused = 503;
        run->loses_answer = how == 1 && !sim->is_calm;
        if (how == 2 && run->cancelled)
                real_run_cancel(sim->worker[worker].real, run->order, true);
        else
                real_run_go_on(sim->worker[worker].real, run->order);
}

bool worker_serve(struct simulation *sim, unsigned worker, unsigned argument)
{
        struct sim_worker *of = &sim->worker[worker];

        for (unsigned i = 0; i < BEGUN_MAX; i++) {
                struct sim_run *run = begun(of, (argument + i) % BEGUN_MAX);

                if (!run->active || real_run_waits(of->real, run->order) != REAL_WAITS_FOR_SERVER)
                        continue;
                serve(sim, worker, run, argument / BEGUN_MAX % 16);
                return true;
        }
        return false;
}

void worker_stop(struct simulation *sim, unsigned worker)
{
        struct sim_worker *of = &sim->worker[worker];

        worker_recall(sim, worker);
        for (unsigned i = 0; i < BEGUN_MAX; i++) {
                struct sim_run *run = begun(of, i);

                if (!run->active)
                        continue;
                cancel(sim, worker, run);
                while (run->active)
                        if (real_run_waits(of->real, run->order) == REAL_WAITS_FOR_HANDLER)
                                real_run_answer(of->real, run->order, NULL);
                        else
                                serve(sim, worker, run, (unsigned)(sim_random(&sim->random) % 4));
        }
}

bool worker_answer(struct simulation *sim, unsigned worker)
{
        struct sim_worker *from = &sim->worker[worker];

        for (size_t i = 0; i < SIM_WRITING && from->current.handler_ran && sim->config.window > 1; i++) {
                if (from->writing[i].active)
                        continue;
                sim_tell(sim, "worker %u: the handler of %s has answered", worker,
                         sim_key(from->current.name));
                from->writing[i] = from->current;
                from->current = (struct sim_run){0};
                say(sim, worker,
                    &(struct sim_word){.answered = {.sequence = from->writing[i].order->sequence,
                                                    .waits = true,
                                                    .answered = true}});
                return true;
        }
        return false;
}

bool worker_aside(struct simulation *sim, unsigned worker, unsigned argument)
{
        struct sim_worker *from = &sim->worker[worker];
        bool first_of_watch = argument % 2;
        struct sim_run *run = &from->inbox[from->inbox_count > 0 ? argument / 2 % from->inbox_count : 0];

        if (sim->config.window <= 1 || from->inbox_count == 0 || from->done_count > INBOX_MAX / 2 ||
            (run->aside && run->first_of_watch == first_of_watch))
                return false;
        sim_tell(sim, "worker %u: %s stands aside%s", worker, sim_key(run->name),
                 first_of_watch ? ", as the next one of its watch" : "");
        run->aside = true;
        run->first_of_watch = first_of_watch;
        run->heard = false;
        say(sim, worker,
            &(struct sim_word){.answered = {.sequence = run->order->sequence,
                                            .waits = true,
                                            .first_of_watch = first_of_watch}});
        return true;
}

void worker_heard(struct simulation *sim, unsigned worker, uint64_t sequence)
{
        struct sim_worker *from = &sim->worker[worker];

        for (size_t i = 0; i < from->inbox_count; i++)
                if (from->inbox[i].order->sequence == sequence)
                        from->inbox[i].heard = true;
}

bool worker_return(struct simulation *sim, unsigned worker)
{
        if (sim->worker[worker].inbox_count == 0)
                return false;
        worker_recall(sim, worker);
        return true;
}

int workers_start(struct simulation *sim)
{
        int r = 0;

        for (unsigned i = 0; i < sim->workers && r >= 0; i++)
                r = real_worker_new(&sim->config, sim->controller.clock_offset, &sim->worker[i].real);
        return r;
}

void worker_kill(struct simulation *sim, unsigned worker)
{
        struct sim_worker *from = &sim->worker[worker];

        real_worker_free(TAKE_PTR(from->real));
        message_free(TAKE_PTR(from->over));
        while (from->inbox_count > 0)
                run_done(&from->inbox[--from->inbox_count]);
        for (unsigned i = 0; i < BEGUN_MAX; i++)
                run_done(begun(from, i));
        while (from->done_count > 0) {
                message_free(from->done[from->done_first].done);
                from->done_first = (from->done_first + 1) % INBOX_MAX;
                from->done_count--;
        }
}
