/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Situations: some steps in a row that chance rarely makes in this order. Each begins where all work is done
 * with an object, overlaps two or three events on it, and leaves the way to rest to the steps behind it. Bits
 * of the argument choose which events, and who dies.
 */
#include "base/duration.h"
#include "tests/simulation/simulation.h"

#define ROUNDS_MAX 60

/* Ends of a run, as worker_end() reads its argument. */
#define END_WELL              1
#define END_WRITING           17 /* a status is written; over a change of others it ends well, too */
#define END_WITH_CONFLICT     49 /* so is this one, but it conflicts with a change of others */
#define END_FAILED            0
#define END_UNAVAILABLE       48
#define END_FAILED_FOR_GOOD   33
#define END_REQUEUED          5  /* again after 30 s */
#define END_REQUEUED_FOR_LONG 53 /* after 70 s */

/* A digit of the argument. */
static unsigned take(unsigned *argument, unsigned below)
{
        unsigned digit = *argument % below;

        *argument /= below;
        return digit;
}

static void work_off(struct simulation *sim)
{
        (void)simulation_gate(sim, 0);
        for (unsigned i = 0; i < ROUNDS_MAX && simulation_round(sim, true); i++)
                ;
}

static void some_rounds(struct simulation *sim, unsigned count, bool ends)
{
        while (count-- > 0)
                (void)simulation_round(sim, ends);
}

/* An object of that name with which all is done that can be done now. */
static struct sim_object *begin(struct simulation *sim, unsigned name, unsigned argument)
{
        struct sim_object *object = &sim->server.object[name];

        if (!object->exists)
                (void)server_act(sim, SERVER_CREATE, name + NAMES * argument);
        work_off(sim);
        return object->exists && !object->deleting ? object : NULL;
}

/* Until the handler of a run of that name has been shown its object. The worker; WORKERS: none was. */
static unsigned show(struct simulation *sim, unsigned name)
{
        for (unsigned i = 0; i < ROUNDS_MAX; i++) {
                for (unsigned worker = 0; worker < WORKERS; worker++) {
                        const struct sim_run *run = &sim->worker[worker].current;

                        if (run->active && run->handler_ran && run->name == name)
                                return worker;
                }
                if (!simulation_round(sim, false))
                        return WORKERS;
        }
        return WORKERS;
}

/* What the watchers know is told, and no more. */
static void tell(struct simulation *sim)
{
        for (unsigned watch = 0; watch < WATCHES; watch++)
                while (watcher_read(sim, watch) || watcher_verify(sim, watch) ||
                       watcher_announce(sim, watch, MESSAGE_MAX) || operator_hear_watcher(sim, watch))
                        ;
}

/* Until a worker has a run of that name that has not begun. WORKERS: none has. */
static unsigned give(struct simulation *sim, unsigned name)
{
        for (unsigned i = 0; i < ROUNDS_MAX; i++) {
                for (unsigned worker = 0; worker < WORKERS; worker++)
                        for (size_t j = 0; j < sim->worker[worker].inbox_count; j++)
                                if (sim->worker[worker].inbox[j].name == name)
                                        return worker;
                for (unsigned watch = 0; watch < WATCHES; watch++) {
                        (void)watcher_read(sim, watch);
                        (void)watcher_announce(sim, watch, MESSAGE_MAX);
                        (void)operator_hear_watcher(sim, watch);
                }
                (void)operator_settle(sim);
        }
        return WORKERS;
}

static void hear_ends(struct simulation *sim)
{
        for (unsigned worker = 0; worker < WORKERS; worker++)
                while (operator_hear_worker(sim, worker))
                        ;
}

/* Nothing runs, and everything is kept: what is to outlive us now is in the ledger alone. */
static void pause_all(struct simulation *sim)
{
        for (unsigned watch = 0; watch < WATCHES; watch++)
                (void)operator_order(sim, watch);
}

static void die(struct simulation *sim, unsigned argument)
{
        unsigned how = take(&argument, 5);

        if (how == 4) {
                pause_all(sim);
                tell(sim);
                (void)operator_settle(sim);
                how = DEATH_KILL;
        }
        if (how > DEATH_POWER)
                return;
        simulation_down(sim, (enum sim_death)how);
        (void)simulation_up(sim, argument);
}

/* Its present content is given up. */
static void give_up(struct simulation *sim, unsigned name)
{
        unsigned worker;

        (void)server_act(sim, SERVER_CHANGE, name);
        worker = show(sim, name);
        if (worker < WORKERS)
                (void)worker_end(sim, worker, END_FAILED_FOR_GOOD);
        work_off(sim);
}

/* Reverts are the changes that are easily lost: the row says that this content was handled. */
bool situation_reverted(struct simulation *sim, unsigned argument)
{
        static const unsigned end[] = {END_WITH_CONFLICT, END_FAILED,           END_WELL,
                                       END_WRITING,       END_UNAVAILABLE,      END_FAILED_FOR_GOOD,
                                       END_REQUEUED,      END_REQUEUED_FOR_LONG};
        unsigned name = take(&argument, NAMES), way, worker;

        if (!begin(sim, name, argument))
                return false;
        if (take(&argument, 3) == 0)
                give_up(sim, name);
        (void)server_act(sim, SERVER_CHANGE, name);
        worker = show(sim, name);
        if (take(&argument, 3))
                (void)server_act(sim, SERVER_CHANGE, name);
        if (take(&argument, 2))
                tell(sim);
        way = take(&argument, ELEMENTS(end) + 4);
        if (worker < WORKERS && way < ELEMENTS(end)) {
                (void)worker_end(sim, worker, end[way]);
                hear_ends(sim);
                if (take(&argument, 4))
                        (void)operator_settle(sim);
        }
        die(sim, argument);
        return true;
}

/* While nobody looks, an object is replaced by another one of its name, and the stores are lost: of the old
 * one only the ledger knows, and something of it may be due. */
bool situation_replaced(struct simulation *sim, unsigned argument)
{
        static const unsigned end[] = {END_WELL, END_FAILED, END_REQUEUED, END_REQUEUED_FOR_LONG};
        unsigned name = take(&argument, NAMES), worker;
        bool knows = !sim->controller.ledger_lost;

        if (simulation_restored_lately(sim) || !begin(sim, name, argument))
                return false;
        (void)server_act(sim, SERVER_CHANGE, name);
        worker = show(sim, name);
        if (worker < WORKERS)
                (void)worker_end(sim, worker, end[take(&argument, ELEMENTS(end))]);
        work_off(sim);
        if (take(&argument, 2))
                (void)server_act(sim, SERVER_BACKUP, name);
        simulation_down(sim, DEATH_KILL);
        if (sim->config_watch[0].finalizer || sim->config_watch[1].finalizer)
                (void)server_act(sim, SERVER_STRIP, name);
        (void)server_act(sim, SERVER_DELETE, name);
        (void)server_act(sim, SERVER_CREATE, name + NAMES * argument);
        for (unsigned i = 0; i < WATCHES; i++)
                simulation_lose_store(sim, i, knows);
        (void)simulation_up(sim, take(&argument, 6));
        some_rounds(sim, take(&argument, 6), false);
        if (take(&argument, 2))
                (void)server_act(sim, SERVER_RESTORE, name);
        return true;
}

/* The database goes back while something of what it undoes is on its way. */
bool situation_restored(struct simulation *sim, unsigned argument)
{
        unsigned name = take(&argument, NAMES), way, rounds;

        if (!begin(sim, name, argument))
                return false;
        (void)server_act(sim, SERVER_BACKUP, name);
        way = take(&argument, 4);
        if (way < 2)
                (void)server_act(sim, SERVER_DELETE, name);
        if (way == 0)
                (void)server_act(sim, SERVER_STRIP, name);
        if (way == 2)
                (void)server_act(sim, SERVER_CHANGE, name);
        if (way == 3)
                (void)server_act(sim, SERVER_RELABEL, name + NAMES * argument);
        rounds = take(&argument, 10);
        some_rounds(sim, rounds, take(&argument, 2));
        (void)server_act(sim, SERVER_RESTORE, name);
        some_rounds(sim, take(&argument, 2), false);
        if (take(&argument, 2))
                simulation_pass(sim, 11 * USEC_PER_SEC); /* a restore is no news any more */
        if (take(&argument, 2))
                die(sim, argument);
        return true;
}

/* An object leaves, or goes, between the moment when its run is given out and the end of that. */
bool situation_left(struct simulation *sim, unsigned argument)
{
        static const unsigned end[] = {END_WELL, END_FAILED, END_WRITING};
        unsigned name = take(&argument, NAMES), worker, way;

        if (!begin(sim, name, argument))
                return false;
        if (take(&argument, 3) == 0)
                (void)simulation_lose_ledger(sim, 0);
        (void)server_act(sim, SERVER_CHANGE, name);
        worker = give(sim, name);
        way = take(&argument, 4);
        if (way == 1 || way == 2)
                worker = show(sim, name);
        (void)server_act(sim, take(&argument, 4) ? SERVER_RELABEL : SERVER_DELETE, name + NAMES * argument);
        tell(sim);
        if (way == 3)
                worker = show(sim, name); /* maybe that it has left */
        if (way == 0 && worker < WORKERS) {
                pause_all(sim); /* which recalls it */
                (void)worker_return(sim, worker);
        }
        if (way == 1 && worker < WORKERS)
                (void)worker_end(sim, worker, end[take(&argument, ELEMENTS(end))]);
        hear_ends(sim);
        (void)operator_settle(sim);
        if (take(&argument, 2))
                die(sim, argument);
        if (take(&argument, 3) == 0)
                (void)server_act(sim, SERVER_RELABEL, name + NAMES * 3);
        if (take(&argument, 2))
                die(sim, argument);
        return true;
}

/* It moves to a watch that is paused, and goes. */
static bool go_while_moving(struct simulation *sim, unsigned name, unsigned argument)
{
        unsigned from = take(&argument, WATCHES), other = 1 - from;

        (void)server_act(sim, SERVER_RELABEL, name + NAMES * (1U << from));
        work_off(sim);
        (void)operator_order(sim, other);
        (void)server_act(sim, SERVER_RELABEL, name + NAMES * (1U << other));
        work_off(sim);
        if (take(&argument, 3) == 0)
                die(sim, argument);
        (void)server_act(sim, SERVER_DELETE, name);
        return true;
}

/* An object leaves and comes back, while it is being told that it has left, and we die in between; or it
 * moves. */
bool situation_reselected(struct simulation *sim, unsigned argument)
{
        unsigned name = take(&argument, NAMES), worker, selected;
        const struct sim_object *object = begin(sim, name, argument);

        if (!object)
                return false;
        if (take(&argument, 3) == 0)
                return go_while_moving(sim, name, argument);
        selected = object->selected;
        (void)server_act(sim, SERVER_RELABEL, name + NAMES * take(&argument, 4));
        worker = show(sim, name);
        if (take(&argument, 3) == 0 && worker < WORKERS) {
                (void)worker_end(sim, worker, END_FAILED);
                hear_ends(sim);
                (void)operator_settle(sim);
        }
        simulation_down(sim, (enum sim_death)take(&argument, 3));
        (void)server_act(sim, SERVER_RELABEL, name + NAMES * selected);
        (void)simulation_up(sim, take(&argument, 6));
        if (take(&argument, 3)) {
                pause_all(sim);
                tell(sim);
                (void)operator_settle(sim);
                simulation_down(sim, DEATH_KILL);
                (void)simulation_up(sim, 0);
        }
        return true;
}

/* The ledger cannot be written for as long as anything comes in; then nothing comes in any more. */
bool situation_busy(struct simulation *sim, unsigned argument)
{
        unsigned name = take(&argument, NAMES);

        if (!begin(sim, name, argument))
                return false;
        (void)simulation_gate(sim, 1);
        (void)server_act(sim, take(&argument, 4) ? SERVER_CHANGE : SERVER_DELETE, name);
        some_rounds(sim, 12, true);
        if (take(&argument, 3) == 0)
                simulation_pass(sim, 61 * USEC_PER_SEC); /* suspended, or not */
        simulation_come_to_rest(sim);
        return true;
}
