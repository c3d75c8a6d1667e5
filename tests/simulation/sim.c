/* SPDX-License-Identifier: Apache-2.0 */
/* The steps: what may happen next, and the way to rest. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "controller/order/pause.h"
#include "tests/simulation/checkpoint.h"
#include "tests/simulation/simulation.h"

uint64_t sim_random(uint64_t *state)
{
        uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

void sim_tell(struct simulation *sim, const char *format, ...)
{
        va_list arguments;

        if (sim->is_quiet)
                return;
        printf("%6llu %9llu.%06llu  ", (unsigned long long)sim->steps,
               (unsigned long long)(sim->boottime / USEC_PER_SEC),
               (unsigned long long)(sim->boottime % USEC_PER_SEC));
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        putchar('\n');
}

/* ---- steps. They get the argument, and say whether anything could be done */

static bool user_create(struct simulation *sim, unsigned argument)
{
        return server_act(sim, SERVER_CREATE, argument);
}

static bool user_change(struct simulation *sim, unsigned argument)
{
        return server_act(sim, SERVER_CHANGE, argument);
}

static bool user_relabel(struct simulation *sim, unsigned argument)
{
        return server_act(sim, SERVER_RELABEL, argument);
}

static bool user_delete(struct simulation *sim, unsigned argument)
{
        return server_act(sim, SERVER_DELETE, argument);
}

static bool user_strip(struct simulation *sim, unsigned argument)
{
        return server_act(sim, SERVER_STRIP, argument);
}

static bool server_backup(struct simulation *sim, unsigned argument)
{
        return server_act(sim, SERVER_BACKUP, argument);
}

static bool server_restore(struct simulation *sim, unsigned argument)
{
        return server_act(sim, SERVER_RESTORE, argument);
}

static bool read_event(struct simulation *sim, unsigned argument)
{
        return watcher_read(sim, argument % WATCHES);
}

static bool announce(struct simulation *sim, unsigned argument)
{
        return watcher_announce(sim, argument % WATCHES, 1 + argument / WATCHES % 3);
}

static bool verify(struct simulation *sim, unsigned argument)
{
        return watcher_verify(sim, argument % WATCHES);
}

static bool listen_to(struct simulation *sim, unsigned argument)
{
        return watcher_listen(sim, argument % WATCHES);
}

static bool hear_watcher(struct simulation *sim, unsigned argument)
{
        return operator_hear_watcher(sim, argument % WATCHES);
}

static bool hear_worker(struct simulation *sim, unsigned argument)
{
        return operator_hear_worker(sim, argument % WORKERS);
}

static bool begin_run(struct simulation *sim, unsigned argument)
{
        return worker_begin(sim, argument % WORKERS);
}

static bool end_run(struct simulation *sim, unsigned argument)
{
        return worker_end(sim, argument % WORKERS, argument / WORKERS);
}

static bool settle(struct simulation *sim, unsigned argument _unused_)
{
        return operator_settle(sim);
}

static bool idle(struct simulation *sim, unsigned argument _unused_)
{
        return operator_idle(sim);
}

static bool page(struct simulation *sim, unsigned argument)
{
        return operator_page(sim, argument % WATCHES);
}

static bool wake_now(struct simulation *sim, unsigned argument _unused_)
{
        return operator_wake(sim, false);
}

#define GATE_MAX_USEC (5 * USEC_PER_SEC) /* after a minute the operator ends */

static void pass(struct simulation *sim, uint64_t usec)
{
        bool is_suspended = usec > GATE_MAX_USEC && sim_random(&sim->random) % 2;

        if (usec > GATE_MAX_USEC && !is_suspended)
                sim->gate_closed = checkpoint_gate_closed = false;
        sim->boottime += usec;
        sim->realtime += usec;
        sim->monotonic += is_suspended ? 0 : usec;
        (void)operator_wake(sim, false);
}

/* It lands on the constants of the code, and one beside them. */
static bool pass_time(struct simulation *sim, unsigned argument)
{
        static const uint64_t some[] = {1,
                                        1000,
                                        4999,
                                        5000,
                                        20000,
                                        250001,
                                        USEC_PER_SEC - 1,
                                        USEC_PER_SEC,
                                        USEC_PER_SEC + 1,
                                        5 * USEC_PER_SEC - 1,
                                        5 * USEC_PER_SEC,
                                        10 * USEC_PER_SEC,
                                        60 * USEC_PER_SEC,
                                        61 * USEC_PER_SEC};
        uint64_t next = operator_next_time(sim);

        if (argument % 3 == 0 && next != UINT64_MAX && next > sim->boottime)
                pass(sim, next - sim->boottime - (argument / 3 % 2));
        else
                pass(sim, some[argument / 3 % ELEMENTS(some)]);
        return true;
}

static bool set_clock(struct simulation *sim, unsigned argument)
{
        uint64_t by = (1 + argument / 2 % 100) * 60 * USEC_PER_SEC;

        sim->realtime = argument % 2 ? sim->realtime + by : sim->realtime - by;
        sim_tell(sim, "the machine's clock is set %s", argument % 2 ? "forward" : "back");
        return true;
}

static bool restart(struct simulation *sim, bool in_order, const char *how)
{
        sim_tell(sim, "operator: %s", how);
        operator_end(sim, in_order);
        if (operator_start(sim) < 0)
                model_broken(sim, "the operator cannot be started again");
        return true;
}

static bool crash(struct simulation *sim, unsigned argument _unused_)
{
        return restart(sim, false, "killed, and started again");
}

static bool stop(struct simulation *sim, unsigned argument _unused_)
{
        sim_tell(sim, "operator: stops in order, and is started again");
        operator_stop(sim);
        return operator_start(sim) >= 0;
}

static bool give_back(struct simulation *sim, unsigned argument)
{
        return worker_return(sim, argument % WORKERS);
}

/* Somebody takes the ledger away; the stores are there. */
static bool lose_ledger(struct simulation *sim, unsigned argument _unused_)
{
        static const char *const suffix[] = {"", "-wal", "-shm"};

        model_unsettle(sim);
        sim_tell(sim, "operator: killed, and its ledger is taken away");
        operator_end(sim, false);
        for (size_t i = 0; i < ELEMENTS(suffix); i++) {
                char path[128];

                snprintf(path, sizeof(path), "%s%s", sim->path, suffix[i]);
                (void)unlink(path);
        }
        sim->is_ledger_lost = true;
        sim->ledgers_lost++;
        /* Where a watch wants finalizers, an object that goes without one is not told then. */
        for (unsigned i = 0; i < WATCHES; i++)
                if (sim->config_watch[i].finalizer || !sim->watcher[i].checked)
                        model_lost(sim, i);
        return operator_start(sim) >= 0;
}

/* The store is thrown away (damage): what went meanwhile only the ledger knows. */
static bool lose_store(struct simulation *sim, unsigned argument)
{
        if (sim->server.epoch > 0 && sim->boottime - sim->server.restored_boottime < 10 * USEC_PER_SEC)
                return false; /* see restore() */
        model_unsettle(sim);
        sim_tell(sim, "operator: killed, and the store of watcher %u is taken away", argument % WATCHES);
        if (sim->controller.ledger_lost)
                model_lost(sim, argument % WATCHES); /* now nobody knows */
        operator_end(sim, false);
        watcher_lose_store(sim, argument % WATCHES);
        return operator_start(sim) >= 0;
}

/* A situation that chance rarely makes: the store is lost, and while nobody looks, an object is replaced by
 * another one of its name. Of the old one only the ledger knows. */
static bool replace_unseen(struct simulation *sim, unsigned argument)
{
        unsigned name = argument % NAMES;

        if (!sim->server.object[name].exists)
                return false;
        (void)server_act(sim, SERVER_STRIP, name);
        (void)server_act(sim, SERVER_DELETE, name);
        (void)server_act(sim, SERVER_CREATE, name + NAMES * (argument / NAMES));
        for (unsigned i = 0; i < WATCHES; i++)
                (void)lose_store(sim, i);
        return true;
}

#define END_WITH_CONFLICT 49 /* see worker_end() */
#define END_WELL          32

/* Likewise: the object of a run is changed while that is under way, which makes a revert of what it was shown.
 * Then the run ends, and what its end has come to is on disk; or the change is announced before it ends. */
static bool change_under_way(struct simulation *sim, unsigned argument)
{
        unsigned worker = argument % WORKERS, way = argument / WORKERS % 3, watch;
        const struct sim_run *run = &sim->worker[worker].current;

        if (!run->active || !run->handler_ran || !server_object(sim, run->name, run->uid))
                return false;
        watch = run->watch;
        (void)server_act(sim, SERVER_CHANGE, run->name);
        while (way == 0 && (watcher_read(sim, watch) || watcher_announce(sim, watch, MESSAGE_MAX) ||
                            operator_hear_watcher(sim, watch)))
                ;
        (void)worker_end(sim, worker, way == 0 ? END_WELL : END_WITH_CONFLICT);
        while (operator_hear_worker(sim, worker))
                ;
        (void)operator_settle(sim);
        return way < 2 || crash(sim, 0);
}

/* The ledger was synced in time; the note of what was under way is of another boot. */
static bool lose_power(struct simulation *sim, unsigned argument _unused_)
{
        model_unsettle(sim);
        sim_tell(sim, "the machine goes down, and comes up");
        operator_end(sim, false);
        sim->is_power_lost = true;
        return operator_start(sim) >= 0;
}

static bool reconfigure(struct simulation *sim, unsigned argument)
{
        struct config_watch *watch = &sim->config_watch[argument % WATCHES];

        watch->finalizer = !watch->finalizer;
        if (sim->controller.ledger_lost)
                model_lost(sim,
                           argument % WATCHES); /* it has objects without a finalizer that nobody knows */
        model_unsettle(sim);
        sim_tell(sim, "watch %u: its finalizer is switched %s", argument % WATCHES,
                 watch->finalizer ? "on" : "off");
        return restart(sim, argument / WATCHES % 2, "takes another configuration");
}

static bool gate(struct simulation *sim, unsigned argument)
{
        sim->gate_closed = checkpoint_gate_closed = argument % 2 && sim->controller.commit.since == 0;
        return true;
}

static bool order(struct simulation *sim, unsigned argument)
{
        return operator_order(sim, argument);
}

static const struct {
        const char *name;
        unsigned weight;
        bool (*act)(struct simulation *sim, unsigned argument);
} actions[] = {
        {"create", 30, user_create},
        {"change", 40, user_change},
        {"relabel", 24, user_relabel},
        {"delete", 20, user_delete},
        {"strip", 4, user_strip},
        {"backup", 8, server_backup},
        {"restore", 6, server_restore},
        {"read", 120, read_event},
        {"announce", 100, announce},
        {"verify", 30, verify},
        {"listen", 60, listen_to},
        {"hear-watcher", 120, hear_watcher},
        {"hear-worker", 80, hear_worker},
        {"begin", 100, begin_run},
        {"end", 90, end_run},
        {"settle", 140, settle},
        {"give-back", 12, give_back},
        {"idle", 20, idle},
        {"page", 20, page},
        {"wake", 20, wake_now},
        {"time", 60, pass_time},
        {"clock", 2, set_clock},
        {"crash", 12, crash},
        {"stop", 4, stop},
        {"reconfigure", 3, reconfigure},
        {"gate", 10, gate},
        {"order", 4, order},
        {"lose-ledger", 3, lose_ledger},
        {"lose-store", 4, lose_store},
        {"replace", 5, replace_unseen},
        {"change-under-way", 10, change_under_way},
        {"lose-power", 6, lose_power},
};

unsigned sim_action_count(void)
{
        return ELEMENTS(actions);
}

const char *sim_action_name(unsigned action)
{
        return action < ELEMENTS(actions) ? actions[action].name : "?";
}

/* Each seed has its own taste: some things happen often in it, and others next to never. */
void sim_mix_new(uint64_t *random, struct sim_mix *ret)
{
        static const unsigned factor[] = {1, 2, 4, 4, 4, 4, 16};

        ret->total = 0;
        for (size_t i = 0; i < ELEMENTS(actions); i++) {
                ret->weight[i] = actions[i].weight * factor[sim_random(random) % ELEMENTS(factor)];
                ret->total += ret->weight[i];
        }
}

struct sim_step sim_random_step(uint64_t *random, const struct sim_mix *mix)
{
        uint64_t value = sim_random(random);
        unsigned at = (unsigned)(value % mix->total), action = 0;

        while (at >= mix->weight[action])
                at -= mix->weight[action++];
        return (struct sim_step){(uint16_t)action, (uint16_t)(value >> 40)};
}

void simulation_step(struct simulation *sim, const struct sim_step *step)
{
        sim->steps++;
        if (!sim->model.broken[0] && step->action < ELEMENTS(actions))
                (void)actions[step->action].act(sim, step->argument);
}

/* ---- rest */

#define REST_STEPS 20000
#define REST_USEC  (1500 * USEC_PER_SEC) /* all backoffs and a quarantine are over by then */

static bool do_all(struct simulation *sim)
{
        bool any = operator_settle(sim);

        for (unsigned i = 0; i < WATCHES; i++) {
                any |= watcher_read(sim, i);
                any |= watcher_announce(sim, i, MESSAGE_MAX);
                any |= watcher_verify(sim, i);
                any |= watcher_listen(sim, i);
                any |= operator_hear_watcher(sim, i);
                any |= operator_page(sim, i);
        }
        for (unsigned i = 0; i < WORKERS; i++) {
                any |= worker_begin(sim, i);
                any |= worker_end(sim, i, 1);
                any |= operator_hear_worker(sim, i);
        }
        any |= operator_idle(sim);
        return any;
}

void simulation_come_to_rest(struct simulation *sim)
{
        uint64_t began = sim->boottime;

        sim->is_calm = true;
        (void)gate(sim, 0);
        for (unsigned i = 0; i < WATCHES; i++)
                (void)pause_resume(&sim->controller.watch[i], 0);
        for (unsigned i = 0; i < REST_STEPS && !sim->model.broken[0]; i++) {
                uint64_t next = operator_next_time(sim);

                sim->steps++;
                if (do_all(sim))
                        continue;
                if (next == UINT64_MAX) {
                        model_at_rest(sim);
                        sim->is_calm = false;
                        return;
                }
                pass(sim, next > sim->boottime ? next - sim->boottime : 0);
                if (sim->boottime - began > REST_USEC)
                        model_broken(sim, "it does not come to rest within %llu s",
                                     (unsigned long long)(REST_USEC / USEC_PER_SEC));
        }
        model_broken(sim, "it does not come to rest within %d steps", REST_STEPS);
}

/* ---- beginning and end */

static void configure(struct simulation *sim)
{
        static const char *const name[WATCHES] = {"first", "second"};

        for (unsigned i = 0; i < WATCHES; i++)
                sim->config_watch[i] = (struct config_watch){
                        .name = (char *)(uintptr_t)name[i],
                        .api_version = (char[]){"v1"},
                        .kind = (char[]){"Thing"},
                        .shared = true,
                        .finalizer = sim_random(&sim->random) % 2,
                        .unselected = sim_random(&sim->random) % 2,
                        .concurrency = 1 + (unsigned)(sim_random(&sim->random) % 2),
                        .retry_first_usec = (sim_random(&sim->random) % 2 ? 20 : 61) * USEC_PER_SEC,
                        .retry_max_usec = 90 * USEC_PER_SEC,
                        .retry_attempts = sim_random(&sim->random) % 2 ? 3 : 0,
                        .retry_throttle_usec = USEC_PER_SEC,
                        .on_unrecoverable = ON_UNRECOVERABLE_THROTTLE,
                        .on_deadline = ON_DEADLINE_ISOLATE,
                        .deadline_usec = 300 * USEC_PER_SEC,
                        .quarantine_after = 2,
                        .quarantine_usec = 200 * USEC_PER_SEC,
                        .on_handler_change = ON_HANDLER_CHANGE_NONE,
                };
        sim->config =
                (struct config){.workers = WORKERS, .watch = sim->config_watch, .watch_count = WATCHES};
}

int simulation_new(uint64_t seed, struct simulation **ret)
{
        struct simulation *sim = calloc(1, sizeof(*sim));

        if (!sim)
                return -ENOMEM;
        sim->random = seed;
        sim->is_quiet = true;
        sim->boottime = 1000 * USEC_PER_SEC;
        sim->realtime = UINT64_C(1700000000) * USEC_PER_SEC;
        sim->monotonic = 500 * USEC_PER_SEC;
        sim->server.version = 100;
        sim->workers = 1 + (unsigned)(sim_random(&sim->random) % WORKERS);
        snprintf(sim->folder, sizeof(sim->folder), "/dev/shm/reconciled-simulation-XXXXXX");
        if (!mkdtemp(sim->folder)) {
                free(sim);
                return -errno;
        }
        snprintf(sim->path, sizeof(sim->path), "%s/ledger.sqlite", sim->folder);
        configure(sim);
        *ret = sim;
        return operator_start(sim);
}

void simulation_free(struct simulation *sim)
{
        static const char *const suffix[] = {"", "-wal", "-shm"};

        if (sim->is_up)
                operator_end(sim, true);
        for (size_t i = 0; i < ELEMENTS(suffix); i++) {
                char path[128];

                snprintf(path, sizeof(path), "%s%s", sim->path, suffix[i]);
                (void)unlink(path);
        }
        (void)rmdir(sim->folder);
        free(sim);
}
