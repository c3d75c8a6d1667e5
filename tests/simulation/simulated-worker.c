/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers: runs one after another, as worker/run/run.c and worker/write do them. The beginning of a
 * run reads the store and writes what comes before the handler; its end carries the answer out. What others
 * do in between is for the other steps.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/simulation.h"

#define LOOK_AGAIN_USEC UINT64_C(10000000) /* whether another watch has an object that has left */

static void run_done(struct sim_run *run)
{
        free((void *)(uintptr_t)run->run.settling);
        *run = (struct sim_run){0};
}

void done_free(struct message_done *done)
{
        free((void *)(uintptr_t)done->uid);
        free((void *)(uintptr_t)done->own_resource_version);
        free((void *)(uintptr_t)done->resource_version);
        *done = (struct message_done){0};
}

static char *number(uint64_t value)
{
        char *text = NULL;

        if (value == 0)
                return strdup("");
        return asprintf(&text, "%llu", (unsigned long long)value) < 0 ? NULL : text;
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
                .run = *run,
                .watch = watch,
                .name = sim_name_number(run->key),
                .uid = sim_uid_number(run->uid),
                .action = (enum run_action)run->action,
        };
        for (const struct sim_run *other = into->inbox; other < taken; other++)
                if (other->first_of_watch && other->heard && other->watch == watch)
                        model_broken(sim, "worker %u gets %s while a run of its watch has the next turn",
                                     worker, run->key);
        taken->run.settling = strdup(run->settling ? run->settling : "");
        taken->run.key = sim_key(taken->name);
        taken->own_version = 0;
        /* Kept as a number: the text goes with the message. */
        taken->known_version = run->at_least_version ? strtoull(run->at_least_version, NULL, 10) : 0;
}

static void say_done(struct simulation *sim, unsigned worker, struct sim_run *run, enum run_result result,
                     uint64_t requeue)
{
        char uid[16];
        struct message_done done = {
                .sequence = run->run.sequence,
                .action = run->action,
                .watch = sim->config_watch[run->watch].name,
                .key = sim_key(run->name),
                .result = (run->cancelled && result != RESULT_SUCCESS && result != RESULT_RETURNED &&
                                           result != RESULT_SETTLING
                                   ? RESULT_CANCELLED
                                   : result),
                .fingerprint = run->fingerprint,
                .own_fingerprint = run->own_version ? run->fingerprint : 0,
                .known_version = run->own_version ? run->known_version : 0,
                .requeue_after_usec = requeue,
                .kinds = "",
                .message = "",
                .settling = result == RESULT_SETTLING ? "left" : "",
                .settle_after_usec = result == RESULT_SETTLING ? LOOK_AGAIN_USEC : 0,
                .handler_ran = run->handler_ran,
                .duration_usec = 1000,
        };

        sim_uid(run->uid, uid);
        done.uid = strdup(uid);
        done.own_resource_version = number(run->own_version);
        done.resource_version = number(run->read.version);
        sim_tell(sim, "worker %u: %s of %s %s for watch %u ends: %s", worker,
                 run_action_name((enum run_action)done.action), done.key, uid, run->watch,
                 run_result_name((enum run_result)done.result));
        if (run->begun)
                model_run_ends(sim, run->name);
        if (!run->handler_ran)
                model_returned(sim, run->watch, run->uid);
        say(sim, worker, &(struct sim_word){.is_end = true, .done = done});
        run_done(run);
}

void worker_recall(struct simulation *sim, unsigned worker)
{
        struct sim_worker *from = &sim->worker[worker];

        while (from->inbox_count > 0) {
                struct sim_run run = from->inbox[--from->inbox_count];

                say_done(sim, worker, &run, RESULT_RETURNED, 0);
        }
}

void worker_cancel(struct simulation *sim, unsigned worker, uint64_t sequence)
{
        struct sim_worker *from = &sim->worker[worker];
        struct sim_run waiting;

        if (from->current.active && from->current.run.sequence == sequence)
                from->current.cancelled = true;
        for (size_t i = 0; i < SIM_WRITING; i++)
                if (from->writing[i].active && from->writing[i].run.sequence == sequence)
                        from->writing[i].cancelled = true;
        for (size_t i = 0; i < from->inbox_count; i++) {
                if (from->inbox[i].run.sequence != sequence)
                        continue;
                waiting = from->inbox[i];
                from->inbox_count--;
                memmove(&from->inbox[i], &from->inbox[i + 1],
                        (from->inbox_count - i) * sizeof(from->inbox[0]));
                say_done(sim, worker, &waiting, RESULT_RETURNED, 0);
                return;
        }
}

/* ---- the beginning */

/* Our own write, based on what was read. False: a conflict. */
static bool write_own(struct simulation *sim, struct sim_run *run)
{
        if (!server_write(sim, run->name, run->uid, run->read.version))
                return false;
        run->own_version = run->known_version = sim->server.version;
        if (sim->server.object[run->name].exists && sim->server.object[run->name].uid == run->uid)
                run->read = sim->server.object[run->name];
        return true;
}

static bool is_current(struct simulation *sim, const struct sim_run *run)
{
        const struct sim_object *object = server_object(sim, run->name, run->uid);

        return object && object->version == run->read.version;
}

static enum model_kind kind_of(const struct sim_run *run)
{
        return run->action == ACTION_FINALIZE     ? MODEL_FINALIZE
               : run->action == ACTION_DELETED    ? MODEL_DELETED
               : run->action == ACTION_UNSELECTED ? MODEL_UNSELECTED
                                                  : MODEL_RECONCILE;
}

static void show(struct simulation *sim, struct sim_run *run)
{
        run->handler_ran = true;
        if (run->run.reason == RUN_TAKEN_OVER || run->run.reason == RUN_SELECTED) /* it had left meanwhile */
                model_heard(sim, run->watch, run->uid, 0, false);
        model_shown(sim, run->watch, run->name, run->uid, kind_of(run), sim_fingerprint(&run->read));
}

static bool tombstone_is_held(const struct sim_store *store, unsigned name, unsigned uid)
{
        for (size_t i = 0; i < store->tombstone_count; i++)
                if (store->tombstone[i].name == name && store->tombstone[i].uid == uid)
                        return store->tombstone[i].held;
        return false;
}

static void begin_deleted(struct simulation *sim, unsigned worker, struct sim_run *run)
{
        run->read = (struct sim_object){.uid = run->uid, .deleting = true};
        run->fingerprint = 0;
        if (sim->config_watch[run->watch].finalizer) {
                run->action = ACTION_FINALIZE;
                if (tombstone_is_held(&sim->watcher[run->watch].store, run->name, run->uid)) {
                        say_done(sim, worker, run, RESULT_STALE, 0);
                        return;
                }
        }
        show(sim, run);
}

/* Its handler knows that the object has left (worker/write/leaving.c). */
static bool is_told(const struct sim_run *run)
{
        return run->run.settling[0] != '\0';
}

/* As begin_unselected() in worker/write/write.c: a watch that does not want our finalizer any more holds no
 * object that is being deleted, and then its handler hears of an end. */
static void begin_unselected(struct simulation *sim, unsigned worker, struct sim_run *run)
{
        const struct config_watch *config = &sim->config_watch[run->watch];
        struct sim_object *object = server_object(sim, run->name, run->uid);
        bool is_going = object && object->deleting && (object->finalizers & 1U << run->watch);
        bool is_to_be_told = config->unselected && !is_told(run);

        run->fingerprint = 0;
        run->read = object ? *object : (struct sim_object){.uid = run->uid, .deleting = true};
        if (is_going && !config->finalizer)
                server_take_finalizer(sim, run->name, run->watch);
        if (is_going && config->finalizer)
                run->action = ACTION_FINALIZE;
        else if (!config->finalizer && !is_to_be_told && (is_going || !object))
                run->action = ACTION_DELETED;
        if (run->action != ACTION_UNSELECTED || is_to_be_told)
                show(sim, run);
        else if (!object)
                say_done(sim, worker, run, RESULT_SUCCESS, 0);
}

static void begin_deleting(struct simulation *sim, unsigned worker, struct sim_run *run)
{
        bool ours = run->read.finalizers & 1U << run->watch;

        if (!sim->config_watch[run->watch].finalizer) {
                if (!ours) {
                        say_done(sim, worker, run, RESULT_STALE, 0);
                        return;
                }
                run->action = ACTION_FINALIZER;
                return;
        }
        run->action = ACTION_FINALIZE;
        if (ours || (!run->held && run->run.handed_out))
                show(sim, run);
        else
                say_done(sim, worker, run, RESULT_SUCCESS, 0);
}

static void begin_reconcile(struct simulation *sim, unsigned worker, struct sim_run *run)
{
        const struct sim_stored *stored = &sim->watcher[run->watch].store.stored[run->name];
        bool wants = sim->config_watch[run->watch].finalizer, ours;

        if (!stored->exists || stored->object.uid != run->uid) {
                say_done(sim, worker, run, RESULT_STALE, 0);
                return;
        }
        if (stored->object.version < run->known_version) {
                run->known_version = 0;
                say_done(sim, worker, run, RESULT_BEHIND, 0);
                return;
        }
        run->known_version = 0;
        run->read = stored->object;
        run->held = stored->held;
        run->fingerprint = stored->fingerprint;
        ours = run->read.finalizers & 1U << run->watch;
        if (run->read.deleting) {
                if (wants && run->action == ACTION_FINALIZER)
                        say_done(sim, worker, run, RESULT_UNNEEDED, 0); /* it gets none any more */
                else
                        begin_deleting(sim, worker, run);
                return;
        }
        if (ours != wants) {
                struct sim_object *object = server_object(sim, run->name, run->uid);

                if (!is_current(sim, run) || object->deleting) {
                        say_done(sim, worker, run, RESULT_CONFLICT, 0);
                        return;
                }
                if (wants)
                        object->finalizers |= 1U << run->watch;
                else
                        object->finalizers &= ~(1U << run->watch);
                (void)write_own(sim, run);
        }
        if (run->action == ACTION_FINALIZER)
                say_done(sim, worker, run, run->own_version ? RESULT_SUCCESS : RESULT_UNNEEDED, 0);
        else
                show(sim, run);
}

/* `release`: our finalizer comes off an object that is being deleted, and nothing else happens. */
static void begin_release(struct simulation *sim, unsigned worker, struct sim_run *run)
{
        struct sim_object *object = server_object(sim, run->name, run->uid);

        run->fingerprint = 0;
        if (!object) {
                say_done(sim, worker, run, RESULT_SUCCESS, 0);
                return;
        }
        if (!object->deleting) {
                say_done(sim, worker, run, RESULT_STALE, 0);
                return;
        }
        model_released(sim, run->watch, run->uid);
        run->read = *object;
        if (object->finalizers & 1U << run->watch)
                server_take_finalizer(sim, run->name, run->watch);
        say_done(sim, worker, run, RESULT_SUCCESS, 0);
}

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

        if (!next || (next->aside && !sim->is_calm && sim->steps % 4 > 0)) /* what it waits for takes long */
                return false;
        *run = *next;
        from->inbox_count--;
        memmove(next, next + 1, (from->inbox_count - (size_t)(next - from->inbox)) * sizeof(*next));
        if (run->aside)
                say(sim, worker, &(struct sim_word){.answered.sequence = run->run.sequence});
        run->aside = run->first_of_watch = false;
        run->begun = true;
        sim_tell(sim, "worker %u: begins %s of %s u%u for watch %u (%s)", worker,
                 run_action_name(run->action), sim_key(run->name), run->uid, run->watch,
                 run_reason_name((enum run_reason)run->run.reason));
        model_run_begins(sim, worker, run->watch, run->name, run->uid);
        if (run->action == ACTION_UNSELECTED)
                model_forgives(sim, run->watch, run->uid); /* what failed is over */
        if (run->action == ACTION_DELETED)
                begin_deleted(sim, worker, run);
        else if (run->action == ACTION_UNSELECTED)
                begin_unselected(sim, worker, run);
        else if (run->action == ACTION_RELEASE)
                begin_release(sim, worker, run);
        else
                begin_reconcile(sim, worker, run);
        return true;
}

/* ---- the end */

/* As in worker/write/patch.c: an end that came, or was undone, while the handler ran. */
static bool begins_anew(const struct sim_run *run, const struct sim_object *object)
{
        return run->action == ACTION_FINALIZE ? run->read.deleting && !object->deleting
                                              : run->read.deleting != object->deleting;
}

/* A status, where the object has changed meanwhile: written all the same, but not known any more. */
static enum run_result write_status(struct simulation *sim, struct sim_run *run, unsigned argument)
{
        struct sim_object *object = server_object(sim, run->name, run->uid);

        if (!object)
                return RESULT_SUCCESS; /* there is nobody to tell */
        if (!is_current(sim, run)) {
                if (argument % 2 || begins_anew(run, object))
                        return RESULT_CONFLICT;
                server_changed(sim, run->name);
                run->own_version = object->version;
                run->known_version = 0;
                return RESULT_SUCCESS;
        }
        (void)write_own(sim, run);
        return RESULT_SUCCESS;
}

/* As leaving_waits() in worker/write/leaving.c. */
static bool waits(const struct simulation *sim, const struct sim_run *run, const struct sim_object *object)
{
        bool is_selected = false, is_to_be_held = false, is_held = false;

        if (run->action != ACTION_UNSELECTED ||
            (sim->config_watch[run->watch].finalizer && object->deleting))
                return false;
        for (unsigned i = 0; i < WATCHES && sim->server.selectable != 1; i++) {
                if (i == run->watch)
                        continue;
                is_held |= sim->config_watch[i].finalizer && (object->finalizers & 1U << i);
                if (object->selected & 1U << i) {
                        is_selected = true;
                        is_to_be_held |= sim->config_watch[i].finalizer;
                }
        }
        return is_selected &&
               (!run->run.taken || (is_to_be_held && !is_held && (object->finalizers & 1U << run->watch)));
}

static enum run_result release(struct simulation *sim, struct sim_run *run)
{
        struct sim_object *object = server_object(sim, run->name, run->uid);

        if (!object)
                return RESULT_SUCCESS;
        if (begins_anew(run, object))
                return RESULT_CONFLICT;
        if (waits(sim, run, object))
                return RESULT_SETTLING;
        if (object->finalizers & 1U << run->watch)
                server_take_finalizer(sim, run->name, run->watch);
        return RESULT_SUCCESS;
}

static enum run_result finish(struct simulation *sim, struct sim_run *run, unsigned argument)
{
        if (run->run.action != ACTION_DELETED &&
            (run->action == ACTION_FINALIZER || run->action == ACTION_FINALIZE ||
             run->action == ACTION_UNSELECTED))
                return release(sim, run);
        if (run->action == ACTION_RECONCILE && argument % 2)
                return write_status(sim, run, argument / 2);
        return RESULT_SUCCESS;
}

static enum run_result failure_of(unsigned argument)
{
        static const enum run_result failure[] = {RESULT_RETRY,     RESULT_RETRY,
                                                  RESULT_PERMANENT, RESULT_UNAVAILABLE,
                                                  RESULT_FORBIDDEN, RESULT_UNRECOVERABLE};

        return failure[argument % ELEMENTS(failure)];
}

static unsigned selected_now(struct simulation *sim, const struct sim_run *run)
{
        const struct sim_object *object = server_object(sim, run->name, run->uid);

        return object ? object->selected : 0;
}

static bool end(struct simulation *sim, unsigned worker, struct sim_run *run, unsigned argument)
{
        bool fails = !sim->is_calm && argument % 3 == 0;
        uint64_t requeue =
                !sim->is_calm && argument % 16 == 5 ? (30 + argument / 16 % 2 * 40) * UINT64_C(1000000) : 0;
        enum run_result result;
        bool asked;

        if (!run->active)
                return false;
        argument /= 16;
        asked = run->handler_ran;
        if (run->cancelled) {
                result = RESULT_CANCELLED;
        } else if (fails) {
                result = failure_of(argument);
        } else {
                result = finish(sim, run, argument);
        }
        if (asked)
                model_answered(sim, run->watch, run->uid, kind_of(run),
                               result == RESULT_SUCCESS || result == RESULT_SETTLING,
                               result == RESULT_RETRY || result == RESULT_PERMANENT,
                               result == RESULT_UNRECOVERABLE, result == RESULT_PERMANENT);
        if (run->run.action == ACTION_UNSELECTED && result == RESULT_SUCCESS)
                model_left(sim, run->watch, run->uid, selected_now(sim, run));
        requeue = result == RESULT_SUCCESS && run->action == ACTION_RECONCILE ? requeue : 0;
        if (asked)
                model_requeued(sim, run->watch, run->uid, requeue);
        say_done(sim, worker, run, result, requeue);
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

bool worker_answer(struct simulation *sim, unsigned worker)
{
        struct sim_worker *from = &sim->worker[worker];

        for (size_t i = 0; i < SIM_WRITING && from->current.active && sim->config.window > 1; i++) {
                if (from->writing[i].active)
                        continue;
                sim_tell(sim, "worker %u: the handler of %s has answered", worker,
                         sim_key(from->current.name));
                from->writing[i] = from->current;
                from->current = (struct sim_run){0};
                say(sim, worker,
                    &(struct sim_word){.answered = {.sequence = from->writing[i].run.sequence,
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
            &(struct sim_word){.answered = {.sequence = run->run.sequence,
                                            .waits = true,
                                            .first_of_watch = first_of_watch}});
        return true;
}

void worker_heard(struct simulation *sim, unsigned worker, uint64_t sequence)
{
        struct sim_worker *from = &sim->worker[worker];

        for (size_t i = 0; i < from->inbox_count; i++)
                if (from->inbox[i].run.sequence == sequence)
                        from->inbox[i].heard = true;
}

bool worker_return(struct simulation *sim, unsigned worker)
{
        if (sim->worker[worker].inbox_count == 0)
                return false;
        worker_recall(sim, worker);
        return true;
}

void worker_kill(struct simulation *sim, unsigned worker)
{
        struct sim_worker *from = &sim->worker[worker];

        while (from->inbox_count > 0)
                run_done(&from->inbox[--from->inbox_count]);
        run_done(&from->current);
        for (size_t i = 0; i < SIM_WRITING; i++)
                run_done(&from->writing[i]);
        while (from->done_count > 0) {
                done_free(&from->done[from->done_first].done);
                from->done_first = (from->done_first + 1) % INBOX_MAX;
                from->done_count--;
        }
}
