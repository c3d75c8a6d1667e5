/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue by itself, with crowds: the rest of the simulation has too few objects for anybody to wait for long.
 * In each watch the first tenant has many keys and all of them are always due; the others have few. Whoever
 * waits counts the runs that go before its own, and the model knows how many these may be (promise 7). Some watches have a rate:
 * a leaky bucket here, into which each run pours an interval, says what may begin (promise 8).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/duration.h"
#include "queue/look.h"
#include "queue/queue-watch.h"
#include "queue/rate.h"
#include "tests/simulation/simulation.h"

#define CROWDED    3  /* watches, at most */
#define TENANTS    4  /* likewise, of each */
#define CROWD_KEYS 10 /* keys of the first tenant */
#define FEW        2  /* keys of another one */
#define PICKS      8000
#define RUNS_MAX   3

/* Beside suspects: either all runs take that long, or a single one does. */
#define LONG_USEC   (5 * QUEUE_PATIENCE_USEC)
#define SINGLE_USEC (20 * QUEUE_PATIENCE_USEC)

enum line { BY_HAND, BEGUN, NORMAL, LOW, LINES };

struct place {
        bool waits, runs;
        enum line line;
        bool alone; /* nothing else of its tenant waits with it */
        unsigned overtaken;
};

struct crowd {
        struct simulation *sim;
        uint64_t random, now;
        unsigned watches, tenants;
        bool has_line[LINES], has_suspects, has_pauses, for_ever;
        unsigned concurrency[CROWDED], running[CROWDED];
        bool paused[CROWDED];
        struct {
                uint64_t interval, most, level, since; /* nsec; interval 0: no limit */
        } leaky[CROWDED];
        struct place place[CROWDED][TENANTS][CROWD_KEYS];
        struct queue *queue;
        struct queue_run run[RUNS_MAX];
        unsigned runs;
        enum { QUICK, LONG, SINGLE } pace;
        uint64_t over[RUNS_MAX];                 /* when it may end */
        uint64_t suspected_since, refused_since; /* a suspect waits; nothing may begin; 0: it is not so */
        bool had_single;                         /* since the last suspect */
};

static unsigned any(struct crowd *crowd, unsigned below)
{
        return (unsigned)(sim_random(&crowd->random) % below);
}

static unsigned keys_of(unsigned tenant)
{
        return tenant == 0 ? CROWD_KEYS : FEW;
}

static struct place *place_of(struct crowd *crowd, const struct queue_run *run)
{
        unsigned tenant, key;

        return sscanf(run->key, "t%u/k%u", &tenant, &key) == 2 ? &crowd->place[run->watch][tenant][key]
                                                               : NULL;
}

/* ---- what the model says */

/* A line is passed over QUEUE_AGEING times at most, and so is what is new behind what has begun; then it is the
 * turn of one tenant and, in that, of one key. Watches take turns, and suspects take each second run at most. */
static unsigned patience(const struct crowd *crowd, unsigned tenant, const struct place *place)
{
        bool is_ordinary = place->line == NORMAL || place->line == BEGUN;
        unsigned line =
                place->line == BY_HAND || (is_ordinary && !crowd->has_line[BY_HAND]) ? 2 : QUEUE_AGEING + 2;
        unsigned key = place->alone ? 1 : keys_of(tenant) * (crowd->has_line[BEGUN] ? QUEUE_AGEING : 1);

        return key * crowd->tenants * line * crowd->watches * (crowd->has_suspects ? 2 : 1) + 2;
}

/* What has begun goes on without. */
static bool has_token(const struct crowd *crowd, unsigned watch, enum line line)
{
        return line == BEGUN || crowd->leaky[watch].interval == 0 ||
               crowd->leaky[watch].level + crowd->leaky[watch].interval <= crowd->leaky[watch].most;
}

static void leak(struct crowd *crowd)
{
        for (unsigned i = 0; i < crowd->watches; i++) {
                uint64_t leaks = (crowd->now - crowd->leaky[i].since) * 1000;

                crowd->leaky[i].level -= leaks < crowd->leaky[i].level ? leaks : crowd->leaky[i].level;
                crowd->leaky[i].since = crowd->now;
        }
}

static void judge_rate(struct crowd *crowd, unsigned watch, enum line line)
{
        if (!has_token(crowd, watch, line))
                model_broken(crowd->sim, "a crowd: a run of watch %u began although its rate allowed none",
                             watch);
        if (line != BEGUN)
                crowd->leaky[watch].level += crowd->leaky[watch].interval;
}

static bool may_run(const struct crowd *crowd, unsigned watch, const struct place *place)
{
        if (!has_token(crowd, watch, place->line))
                return false;
        if (!place->waits || (crowd->paused[watch] && place->line != BY_HAND && place->line != BEGUN))
                return false;
        return crowd->concurrency[watch] == 0 || crowd->running[watch] < crowd->concurrency[watch];
}

/* A run begins: all that could have begun in its stead were overtaken. */
static void judge(struct crowd *crowd, const struct place *begins)
{
        for (unsigned watch = 0; watch < crowd->watches; watch++)
                for (unsigned tenant = 0; tenant < crowd->tenants; tenant++)
                        for (unsigned key = 0; key < keys_of(tenant); key++) {
                                struct place *place = &crowd->place[watch][tenant][key];

                                if (place == begins || !may_run(crowd, watch, place) ||
                                    ++place->overtaken <= patience(crowd, tenant, place))
                                        continue;
                                model_broken(
                                        crowd->sim,
                                        "a crowd: key %u of tenant %u of %u in watch %u of %u, line %u, "
                                        "was overtaken %u times",
                                        key, tenant, crowd->tenants, watch, crowd->watches,
                                        (unsigned)place->line, place->overtaken);
                        }
}

static void note_waiting(struct crowd *crowd, unsigned watch, unsigned tenant, struct place *place,
                         enum line line)
{
        bool alone = true;

        for (unsigned key = 0; key < keys_of(tenant); key++) {
                struct place *other = &crowd->place[watch][tenant][key];

                if (other == place || !other->waits)
                        continue;
                alone = false;
                other->alone = false;
        }
        *place = (struct place){.waits = true, .line = line, .alone = alone};
}

static bool suspect_runs(struct crowd *crowd)
{
        for (unsigned i = 0; i < crowd->runs; i++)
                if (!place_of(crowd, &crowd->run[i]))
                        return true;
        return false;
}

static bool place_waits(const struct crowd *crowd, unsigned watch)
{
        for (unsigned tenant = 0; tenant < crowd->tenants; tenant++)
                for (unsigned key = 0; key < keys_of(tenant); key++)
                        if (crowd->place[watch][tenant][key].waits &&
                            crowd->place[watch][tenant][key].line != BEGUN)
                                return true;
        return false;
}

static bool any_may_run(const struct crowd *crowd)
{
        for (unsigned watch = 0; watch < crowd->watches; watch++)
                for (unsigned tenant = 0; tenant < crowd->tenants; tenant++)
                        for (unsigned key = 0; key < keys_of(tenant); key++)
                                if (may_run(crowd, watch, &crowd->place[watch][tenant][key]))
                                        return true;
        return false;
}

/* For as long as it is so. Returns whether that is too long. */
static bool lasts(const struct crowd *crowd, uint64_t *since, bool is_so, uint64_t most)
{
        if (!is_so)
                *since = 0;
        else if (*since == 0)
                *since = crowd->now;
        return is_so && crowd->now - *since > most;
}

/* Then a suspect takes turns with others for tokens, too. */
static bool has_rates(const struct crowd *crowd)
{
        for (unsigned i = 0; i < crowd->watches; i++)
                if (crowd->leaky[i].interval > 0)
                        return true;
        return false;
}

/* A suspect holds others back for less than half of the time that a run takes, and does not wait for ever itself: some phases
 * pass in vain until one outlasts what runs. begun: NULL if nothing may begin, though there is a worker. */
static void judge_suspects(struct crowd *crowd, const struct queue_run *begun)
{
        bool is_one = begun && !place_of(crowd, begun), none_runs = !is_one && !suspect_runs(crowd);

        if (is_one)
                crowd->had_single = false;
        if (lasts(crowd, &crowd->refused_since,
                  !begun && crowd->pace == SINGLE && none_runs && any_may_run(crowd), SINGLE_USEC / 2))
                model_broken(crowd->sim, "a crowd: a suspect held others back for too long");
        if (lasts(crowd, &crowd->suspected_since, crowd->pace != QUICK && none_runs && !crowd->paused[0],
                  (has_rates(crowd) ? 4 : 2) * SINGLE_USEC))
                model_broken(crowd->sim, "a crowd: no suspect ran");
}

/* Nobody waits longer than the rate demands, and the queue says when it will go on. */
static void judge_rest(struct crowd *crowd)
{
        uint64_t next = queue_next_time(crowd->queue);

        if (crowd->has_suspects)
                return;
        if (any_may_run(crowd))
                model_broken(crowd->sim, "a crowd: nothing begins although something may");
        if (next <= crowd->now)
                model_broken(crowd->sim, "a crowd: the queue wants to be asked again at once");
        for (unsigned i = 0; i < crowd->watches; i++) {
                uint64_t rest = crowd->leaky[i].most - crowd->leaky[i].interval;
                uint64_t token = crowd->leaky[i].level > rest
                                         ? crowd->now + (crowd->leaky[i].level - rest + 999) / 1000
                                         : 0;

                if (token > 0 && !crowd->paused[i] && place_waits(crowd, i) && next > token)
                        model_broken(crowd->sim,
                                     "a crowd: what waits for the rate is not woken for its token");
        }
}

/* ---- what happens */

static void push_key(struct crowd *crowd, unsigned watch, unsigned tenant, unsigned key)
{
        struct place *place = &crowd->place[watch][tenant][key];
        enum line line = any(crowd, LINES);
        char name[32];
        struct queue_item item = {.key = name, .uid = "u", .fingerprint = 1, .reason = RUN_CHANGED};

        if (place->waits || place->runs)
                return;
        if (!crowd->has_line[line])
                line = NORMAL;
        snprintf(name, sizeof(name), "t%u/k%u", tenant, key);
        item.urgent = line == BY_HAND;
        item.priority = line == LOW ? QUEUE_LOW : QUEUE_NORMAL;
        item.reason = line == BEGUN ? RUN_SETTLING : RUN_CHANGED;
        (void)queue_push(crowd->queue, watch, &item, crowd->now);
        note_waiting(crowd, watch, tenant, place, line);
}

static void push_some(struct crowd *crowd)
{
        unsigned watch = any(crowd, crowd->watches), tenant = any(crowd, crowd->tenants);

        for (unsigned i = 0; i < crowd->watches; i++)
                for (unsigned key = 0; key < CROWD_KEYS; key++)
                        push_key(crowd, i, 0, key);
        if (any(crowd, 4) == 0)
                push_key(crowd, watch, tenant, any(crowd, keys_of(tenant)));
        if (crowd->has_suspects && any(crowd, 2))
                (void)queue_push(crowd->queue, 0,
                                 &(struct queue_item){.key = any(crowd, 2) ? "bad/a" : "bad/b",
                                                      .uid = "u",
                                                      .suspect = true,
                                                      .reason = RUN_RETRY},
                                 crowd->now);
        if (crowd->has_pauses && any(crowd, 50) == 0) {
                crowd->paused[watch] = !crowd->paused[watch];
                queue_pause(crowd->queue, watch, crowd->paused[watch]);
        }
}

static uint64_t over_at(struct crowd *crowd, const struct place *place)
{
        if (!place || crowd->pace == QUICK || (crowd->pace == SINGLE && crowd->had_single))
                return crowd->now;
        crowd->had_single = true;
        return crowd->now + (crowd->pace == LONG ? LONG_USEC : SINGLE_USEC);
}

static bool begin(struct crowd *crowd)
{
        struct queue_run *run = &crowd->run[crowd->runs];
        struct place *place;
        bool begins;

        if (crowd->runs == RUNS_MAX)
                return false;
        begins = queue_next(crowd->queue, crowd->now, run);
        judge_suspects(crowd, begins ? run : NULL);
        if (!begins) {
                judge_rest(crowd);
                return false;
        }
        place = place_of(crowd, run);
        judge(crowd, place);
        judge_rate(crowd, run->watch, place ? place->line : NORMAL);
        crowd->over[crowd->runs] = over_at(crowd, place);
        crowd->runs++;
        crowd->running[run->watch]++;
        if (place)
                *place = (struct place){.runs = true, .line = place->line};
        return true;
}

/* What has begun goes on at once: by chance, or each second key for ever. */
static bool goes_on(struct crowd *crowd, const struct place *place)
{
        if (!place || !crowd->has_line[BEGUN])
                return false;
        return crowd->for_ever ? (place - &crowd->place[0][0][0]) % 2 == 0 : any(crowd, 2);
}

/* A run that did not ask its handler has used nothing up; one that only goes on may ask it all the same. */
static void asked_handler(struct crowd *crowd, const struct queue_run *run, enum line line)
{
        bool asked = any(crowd, 8) == 0 ? line == BEGUN : line != BEGUN;
        uint64_t interval = crowd->leaky[run->watch].interval, *level = &crowd->leaky[run->watch].level;

        queue_handler_ran(crowd->queue, run->watch, run->id, asked, crowd->now);
        if (asked && line == BEGUN)
                *level += interval;
        else if (!asked && line != BEGUN)
                *level -= interval < *level ? interval : *level;
}

static void end(struct crowd *crowd)
{
        unsigned index = crowd->runs > 0 ? any(crowd, crowd->runs) : 0;
        struct queue_run run = crowd->run[index];
        struct place *place;
        struct queue_outcome outcome = {.fingerprint = 1, .reason = RUN_SETTLING};
        unsigned tenant = 0;

        if (crowd->runs == 0 || crowd->now < crowd->over[index])
                return;
        place = place_of(crowd, &run);
        outcome.handled = !goes_on(crowd, place);
        asked_handler(crowd, &run, place ? place->line : NORMAL);
        if (place) {
                place->runs = false;
                tenant = (unsigned)strtoul(run.key + 1, NULL, 10);
        }
        crowd->run[index] = crowd->run[--crowd->runs];
        crowd->over[index] = crowd->over[crowd->runs];
        crowd->running[run.watch]--;
        (void)queue_done(crowd->queue, run.id, &outcome, crowd->now);
        if (!outcome.handled)
                note_waiting(crowd, run.watch, tenant, place, BEGUN);
}

static void limit_rate(struct crowd *crowd, unsigned watch, uint64_t turn)
{
        unsigned burst = 1 + any(crowd, 4);
        uint64_t interval = any(crowd, 2) ? turn * 1000 * (1 + any(crowd, 60)) / 10 + any(crowd, 1000) : 0;

        crowd->leaky[watch].interval = interval;
        crowd->leaky[watch].most = burst * interval;
        crowd->leaky[watch].since = crowd->now;
        queue_set_rate(crowd->queue, watch, interval, burst);
}

void crowd_judge(struct simulation *sim, uint64_t seed)
{
        struct crowd crowd = {.sim = sim, .random = seed ^ UINT64_C(0xc0d), .now = 1};
        uint64_t turn;

        if (queue_new(&crowd.queue) < 0)
                return;
        crowd.watches = 1 + any(&crowd, CROWDED);
        crowd.tenants = 2 + any(&crowd, TENANTS - 1);
        crowd.has_line[NORMAL] = true;
        for (enum line line = 0; line < LINES; line++)
                crowd.has_line[line] |= any(&crowd, 2);
        crowd.has_suspects = any(&crowd, 3) == 0;
        crowd.pace = crowd.has_suspects ? any(&crowd, 3) : QUICK;
        crowd.has_pauses = any(&crowd, 3) == 0;
        crowd.for_ever = any(&crowd, 2);
        turn = crowd.pace != QUICK  ? QUEUE_PATIENCE_USEC / 4
               : crowd.has_suspects ? QUEUE_PATIENCE_USEC + 1
                                    : USEC_PER_MSEC;
        for (unsigned i = 0; i < crowd.watches; i++) {
                crowd.concurrency[i] = any(&crowd, RUNS_MAX);
                (void)queue_add_watch(crowd.queue, crowd.concurrency[i]);
                limit_rate(&crowd, i, turn);
        }
        for (unsigned i = 0; i < PICKS && !sim->model.broken[0]; i++) {
                crowd.now += turn;
                leak(&crowd);
                push_some(&crowd);
                if (!begin(&crowd) || any(&crowd, 2))
                        end(&crowd);
        }
        queue_free(crowd.queue);
}
