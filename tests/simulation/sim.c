/* SPDX-License-Identifier: Apache-2.0 */
/* The steps: what may happen next, and the way to rest. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "config/watch-notes.h"
#include "controller/order/by-hand.h"
#include "controller/run/last-life.h"
#include "tests/simulation/checkpoint-steps.h"
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

static bool answer(struct simulation *sim, unsigned argument)
{
        return worker_answer(sim, argument % WORKERS);
}

static bool aside(struct simulation *sim, unsigned argument)
{
        return worker_aside(sim, argument % WORKERS, argument / WORKERS);
}

static bool write_answer(struct simulation *sim, unsigned argument)
{
        return worker_write(sim, argument % WORKERS, argument / WORKERS);
}

static bool serve(struct simulation *sim, unsigned argument)
{
        return worker_serve(sim, argument % WORKERS, argument / WORKERS);
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

void simulation_pass(struct simulation *sim, uint64_t usec)
{
        bool is_suspended = usec > GATE_MAX_USEC && sim_random(&sim->random) % 2;

        if (usec > GATE_MAX_USEC && !is_suspended)
                sim->gate_closed = checkpoint_gate_closed = false;
        sim->boottime += usec;
        sim->realtime += usec;
        sim->monotonic += is_suspended ? 0 : usec;
        (void)operator_wake(sim, false);
}

void simulation_tick(struct simulation *sim)
{
        sim->boottime++;
        sim->realtime++;
        sim->monotonic++;
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
                simulation_pass(sim, next - sim->boottime - (argument / 3 % 2));
        else
                simulation_pass(sim, some[argument / 3 % ELEMENTS(some)]);
        return true;
}

static bool set_clock(struct simulation *sim, unsigned argument)
{
        uint64_t by = (1 + argument / 2 % 100) * 60 * USEC_PER_SEC;

        sim->realtime = argument % 2 ? sim->realtime + by : sim->realtime - by;
        sim_tell(sim, "the machine's clock is set %s", argument % 2 ? "forward" : "back");
        return true;
}

void simulation_down(struct simulation *sim, enum sim_death how)
{
        static const char *const name[] = {"is killed", "stops in order", "goes down with its machine"};

        /* What the machine has forgotten is found by versions, which mean nothing after a restore: both at once
         * are not tried. */
        if (how == DEATH_POWER && simulation_restored_lately(sim))
                how = DEATH_KILL;
        sim_tell(sim, "operator: %s", name[how]);
        if (how == DEATH_STOP)
                operator_stop(sim);
        else
                operator_end(sim, false);
        if (how == DEATH_POWER) {
                /* The ledger was synced in time; the note of what was under way is of another boot. */
                model_power_lost(sim);
                sim->is_power_lost = true;
        }
}

/* It may have been down for long. */
bool simulation_up(struct simulation *sim, unsigned argument)
{
        static const unsigned some[] = {0, 0, 0, 5, 61, 100};
        uint64_t usec = some[argument % ELEMENTS(some)] * USEC_PER_SEC;

        sim->boottime += usec;
        sim->realtime += usec;
        sim->monotonic += usec;
        sim_tell(sim, "operator: started again after %llu s", (unsigned long long)(usec / USEC_PER_SEC));
        if (operator_start(sim) < 0)
                model_broken(sim, "the operator cannot be started again");
        return true;
}

static bool crash(struct simulation *sim, unsigned argument)
{
        simulation_down(sim, DEATH_KILL);
        return simulation_up(sim, argument);
}

static bool stop(struct simulation *sim, unsigned argument)
{
        simulation_down(sim, DEATH_STOP);
        return simulation_up(sim, argument);
}

static bool give_back(struct simulation *sim, unsigned argument)
{
        return worker_return(sim, argument % WORKERS);
}

/* Somebody takes the ledger away; the stores are there. */
bool simulation_lose_ledger(struct simulation *sim, unsigned argument)
{
        static const char *const suffix[] = {"", "-wal", "-shm"};

        model_unsettle(sim);
        simulation_down(sim, DEATH_KILL);
        sim_tell(sim, "operator: its ledger is taken away");
        for (size_t i = 0; i < ELEMENTS(suffix); i++) {
                char path[128];

                snprintf(path, sizeof(path), "%s%s", sim->path, suffix[i]);
                (void)unlink(path);
        }
        sim->is_ledger_lost = true;
        for (unsigned i = 0; i < WATCHES; i++) {
                model_ledger_lost(sim, i);
                /* Where a watch wants finalizers, an object that goes without one is not told then. */
                if (sim->config_watch[i].finalizer || !sim->watcher[i].checked)
                        model_lost(sim, i);
        }
        return simulation_up(sim, argument);
}

/* A store is thrown away (damage): what went meanwhile only the ledger knows. The operator is down. */
void simulation_lose_store(struct simulation *sim, unsigned watch, bool knows)
{
        model_unsettle(sim);
        sim_tell(sim, "the store of watcher %u is taken away", watch);
        if (!knows)
                model_lost(sim, watch); /* now nobody knows */
        watcher_lose_store(sim, watch);
        if (!knows)
                model_ledger_lost(sim, watch);
}

static bool lose_store(struct simulation *sim, unsigned argument)
{
        bool knows = !sim->controller.ledger_lost;

        simulation_down(sim, DEATH_KILL);
        simulation_lose_store(sim, argument % WATCHES, knows);
        return simulation_up(sim, argument / WATCHES);
}

/* See restore() in simulated-server.c. */
bool simulation_restored_lately(const struct simulation *sim)
{
        return sim->server.epoch > 0 && sim->boottime - sim->server.restored_boottime < 60 * USEC_PER_SEC;
}

static bool lose_power(struct simulation *sim, unsigned argument)
{
        simulation_down(sim, DEATH_POWER);
        return simulation_up(sim, argument);
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
        operator_end(sim, argument / WATCHES % 2);
        return simulation_up(sim, 0);
}

bool simulation_gate(struct simulation *sim, unsigned argument)
{
        sim->gate_closed = checkpoint_gate_closed = argument % 2 && sim->controller.commit.since == 0;
        return true;
}

static bool order(struct simulation *sim, unsigned argument)
{
        return operator_order(sim, argument);
}

/* may_lack: half of the seeds have none of these. */
static const struct {
        const char *name;
        unsigned weight;
        bool may_lack;
        bool (*act)(struct simulation *sim, unsigned argument);
        enum { EVERYWHERE, WITH_WINDOW, WITH_SLOW_SERVER } where;
} actions[] = {
        {"create", 30, false, user_create},
        {"change", 40, false, user_change},
        {"relabel", 24, true, user_relabel},
        {"delete", 20, true, user_delete},
        {"strip", 4, true, user_strip},
        {"backup", 8, true, server_backup},
        {"restore", 6, true, server_restore},
        {"read", 120, false, read_event},
        {"announce", 100, false, announce},
        {"verify", 30, false, verify},
        {"listen", 60, false, listen_to},
        {"hear-watcher", 120, false, hear_watcher},
        {"hear-worker", 80, false, hear_worker},
        {"begin", 100, false, begin_run},
        {"end", 90, false, end_run},
        {"settle", 140, false, settle},
        {"give-back", 12, true, give_back},
        {"idle", 20, false, idle},
        {"page", 20, false, page},
        {"wake", 20, false, wake_now},
        {"time", 60, false, pass_time},
        {"clock", 2, true, set_clock},
        {"crash", 12, true, crash},
        {"stop", 4, true, stop},
        {"reconfigure", 3, true, reconfigure},
        {"gate", 10, true, simulation_gate},
        {"order", 4, true, order},
        {"lose-ledger", 3, true, simulation_lose_ledger},
        {"lose-store", 4, true, lose_store},
        {"lose-power", 4, true, lose_power},
        {"reverted", 10, true, situation_reverted},
        {"replaced", 12, true, situation_replaced},
        {"restored", 6, true, situation_restored},
        {"left", 12, true, situation_left},
        {"reselected", 4, true, situation_reselected},
        {"busy", 4, true, situation_busy},
        {"answer", 60, false, answer, .where = WITH_WINDOW},
        {"write", 90, false, write_answer, .where = WITH_WINDOW},
        {"aside", 30, true, aside, .where = WITH_WINDOW},
        {"serve", 160, false, serve, .where = WITH_SLOW_SERVER},
};

/* In a quarter of all seeds; the others are as they were before there was one. */
static unsigned window_of(uint64_t seed)
{
        return seed % 4 != 3 ? 1 : seed / 4 % 2 ? SIM_WRITING : RUNS_AT_ONCE;
}

/* In a quarter of all seeds, and of those with a window in a quarter. */
static bool server_is_slow(uint64_t seed)
{
        return seed % 4 == 2 || seed % 16 == 15;
}

unsigned sim_action_count(void)
{
        return ELEMENTS(actions);
}

const char *sim_action_name(unsigned action)
{
        return action < ELEMENTS(actions) ? actions[action].name : "?";
}

/* Each seed has its own taste: some things happen often in it, and others next to never. */
void sim_mix_new(uint64_t seed, uint64_t *random, struct sim_mix *ret)
{
        static const unsigned factor[] = {1, 2, 4, 4, 4, 4, 16};
        const bool is_there[] = {true, window_of(seed) > 1, server_is_slow(seed)};

        *ret = (struct sim_mix){0};
        for (size_t i = 0; i < ELEMENTS(actions); i++) {
                bool lacks = actions[i].may_lack && is_there[actions[i].where] && sim_random(random) % 2;

                if (lacks || !is_there[actions[i].where])
                        continue;
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

/* Whatever can be done next. */
static void progress(struct simulation *sim, unsigned argument)
{
        static bool (*const step[])(struct simulation *, unsigned) = {
                read_event, announce, verify, listen_to, hear_watcher, hear_worker,
                begin_run,  end_run,  settle, page,      idle,         wake_now};

        if (serve(sim, argument))
                return;
        for (unsigned i = 0; i < 2 * ELEMENTS(step); i++)
                if (step[(argument + i) % ELEMENTS(step)](sim, argument / ELEMENTS(step) + i))
                        return;
}

void simulation_step(struct simulation *sim, const struct sim_step *step)
{
        sim->steps++;
        if (sim->model.broken[0] || step->action >= ELEMENTS(actions))
                return;
        if (!actions[step->action].act(sim, step->argument))
                progress(sim, step->argument); /* a step that is impossible is none */
}

/* ---- rest */

#define REST_STEPS 20000
#define REST_USEC  (1500 * USEC_PER_SEC) /* all backoffs and a quarantine are over by then */

#define WELL 12 /* of worker_serve() */

bool simulation_round(struct simulation *sim, bool ends)
{
        bool any = operator_settle(sim);

        sim->steps++;
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
                any |= worker_serve(sim, i, WELL);
                any |= ends && worker_end(sim, i, sim->steps % 2 ? 1 : 17); /* a status is written, or not */
                for (unsigned j = 0; j < SIM_WRITING && ends; j++)
                        any |= worker_write(sim, i, (sim->steps % 2 ? 1U : 17U) * SIM_WRITING + j);
                any |= operator_hear_worker(sim, i);
        }
        any |= operator_wake(sim, false);
        any |= operator_idle(sim);
        return any;
}

#define GIVES_UP 33 /* of worker_end(): a permanent failure */

/* Objects that were given up get one more attempt. That shows best once nobody changes them any more. */
static void renew(struct simulation *sim)
{
        switch (sim->steps % 6) {
        case 0: /* what is under way then is given up when the walk is over */
                for (unsigned i = 0; i < WORKERS; i++)
                        (void)worker_begin(sim, i);
                operator_reload(sim);
                for (unsigned i = 0; i < 20; i++)
                        (void)simulation_round(sim, false);
                for (unsigned i = 0; i < WORKERS; i++)
                        (void)worker_end(sim, i, GIVES_UP);
                break;
        case 1:
                sim->stamp++;
                (void)crash(sim, 0);
                break;
        case 2:
                operator_reload(sim);
                (void)operator_settle(sim);
                (void)operator_idle(sim);
                (void)operator_settle(sim);
                (void)crash(sim, 0);
                break;
        default:
                break;
        }
}

void simulation_come_to_rest(struct simulation *sim)
{
        uint64_t began = sim->boottime;

        (void)simulation_gate(sim, 0);
        renew(sim);
        sim->is_calm = true;
        for (unsigned i = 0; i < WATCHES; i++)
                (void)pause_resume(&sim->controller.watch[i], 0);
        for (unsigned i = 0; i < REST_STEPS && !sim->model.broken[0]; i++) {
                uint64_t next = operator_next_time(sim);

                if (simulation_round(sim, true))
                        continue;
                ledger_lost_review(&sim->controller);
                if (next == UINT64_MAX) {
                        model_at_rest(sim);
                        sim->is_calm = false;
                        return;
                }
                simulation_pass(sim, next > sim->boottime ? next - sim->boottime : 0);
                if (sim->boottime - began > REST_USEC)
                        model_broken(sim, "it does not come to rest within %llu s",
                                     (unsigned long long)(REST_USEC / USEC_PER_SEC));
        }
        model_broken(sim, "it does not come to rest within %d steps", REST_STEPS);
}

/* ---- beginning and end */

static void configure(struct simulation *sim, uint64_t seed)
{
        static const char *const name[WATCHES] = {"first", "second"}, *const selector[WATCHES] = {
                                                                              "first=1", "second=1"};
        static char none[] = "", version[] = "v1", operator[] = "sim";

        bool are_twins = sim_random(&sim->random) % 3;

        sim->server.selectable = are_twins ? (1U << WATCHES) - 1 : 1;
        for (unsigned i = 0; i < WATCHES; i++)
                sim->config_watch[i] = (struct config_watch){
                        .name = (char *)(uintptr_t)name[i],
                        .api_version = version,
                        .kind = (char *)(uintptr_t)(are_twins ? "Thing" : name[i]),
                        .id = (char *)(uintptr_t)(i > 0 ? name[i] : ""),
                        .label_selector = (char *)(uintptr_t)selector[i],
                        .field_selector = none,
                        .filter = none,
                        .ready_condition = none,
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
                };
        sim->is_slow = server_is_slow(seed);
        sim->config = (struct config){.workers = WORKERS,
                                      .operator_name = operator,
                                      .window = window_of(seed),
                                      .watch = sim->config_watch,
                                      .watch_count = WATCHES};
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
        sim->stamp = 1;
        sim->workers = 1 + (unsigned)(sim_random(&sim->random) % WORKERS);
        snprintf(sim->folder, sizeof(sim->folder), "/dev/shm/reconciled-simulation-XXXXXX");
        if (!mkdtemp(sim->folder)) {
                free(sim);
                return -errno;
        }
        snprintf(sim->path, sizeof(sim->path), "%s/ledger.sqlite", sim->folder);
        configure(sim, seed);
        simulation_goes_on(sim);
        *ret = sim;
        return config_name_notes(&sim->config) < 0 ? -ENOMEM : operator_start(sim);
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
        for (unsigned i = 0; i < WATCHES; i++)
                notes_done(&sim->config_watch[i]);
        free(sim->config.former_names);
        free(sim);
}
