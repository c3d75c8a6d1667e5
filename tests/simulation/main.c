/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     simulate [--replicas] [--seed N] [--seconds N] [--seeds N] [--total N] [--steps N] [--history] [--no-shrink]
 *
 * Runs seeds from N on, each for some rounds of steps with a rest behind each round, until the time, the
 * number of seeds, or the total of steps is over; fewer seeds than --seeds demands are a failure. A seed that breaks a promise is shrunk to the fewest steps that still break it,
 * and its history is printed; then the exit status is 1. --replicas: the election of several replicas (replicas.h) in
 * the place of one operator; its seeds have a length of their own, and are not shrunk.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/simulation/replicas.h"
#include "tests/simulation/simulation.h"

#define STEPS_MAX 4096

struct script {
        uint64_t seed;
        struct sim_step step[STEPS_MAX];
        size_t count;
        uint64_t steps; /* that were done, those to rest included */
        char broken[512];
};

static bool is_rest(const struct sim_step *step)
{
        return step->action == UINT16_MAX;
}

/* True: a promise does not hold. */
static bool play(struct script *script, bool history)
{
        struct simulation *sim;

        if (simulation_new(script->seed, &sim) < 0) {
                fprintf(stderr, "the simulation cannot be started\n");
                exit(2);
        }
        sim->is_quiet = !history;
        crowd_judge(sim, script->seed);
        for (size_t i = 0; i < script->count && !sim->model.broken[0]; i++) {
                if (is_rest(&script->step[i]))
                        simulation_come_to_rest(sim);
                else
                        simulation_step(sim, &script->step[i]);
        }
        script->steps = sim->steps;
        snprintf(script->broken, sizeof(script->broken), "%s", sim->model.broken);
        simulation_free(sim);
        return script->broken[0] != '\0';
}

static void make(struct script *script, uint64_t seed, size_t steps)
{
        /* Between two rests: most mistakes are seen only at rest, and some need a long way to it. */
        static const size_t length[] = {4, 8, 16, 16, 32, 64, 160};
        uint64_t random = seed ^ UINT64_C(0x5eed);
        struct sim_mix mix;

        script->seed = seed;
        script->count = 0;
        sim_mix_new(seed, &random, &mix);
        while (script->count < steps) {
                size_t round = length[sim_random(&random) % ELEMENTS(length)];

                for (size_t i = 0; i < round && script->count + 1 < STEPS_MAX; i++)
                        script->step[script->count++] = sim_random_step(&random, &mix);
                script->step[script->count++] = (struct sim_step){UINT16_MAX, 0};
        }
}

/* Leaves out as much as can be: halves first, single steps last. Any broken promise will do. */
static void shrink(struct script *script)
{
        struct script *trial = malloc(sizeof(*trial));

        for (size_t part = script->count / 2; part > 0 && trial; part /= 2)
                for (size_t at = 0; at + 1 < script->count;) {
                        size_t left_out = at + part < script->count ? part : script->count - at;

                        *trial = *script;
                        trial->count -= left_out;
                        memmove(&trial->step[at], &script->step[at + left_out],
                                (script->count - at - left_out) * sizeof(script->step[0]));
                        if (play(trial, false))
                                *script = *trial;
                        else
                                at += part;
                }
        free(trial);
}

static void report(struct script *script, uint64_t steps, bool shrinks)
{
        char first[sizeof(script->broken)];

        snprintf(first, sizeof(first), "%s", script->broken);
        if (shrinks)
                shrink(script);
        printf("seed %llu breaks a promise after %llu steps: %s\n", (unsigned long long)script->seed,
               (unsigned long long)steps, first);
        if (!shrinks)
                return;
        printf("%zu steps do:", script->count);
        for (size_t i = 0; i < script->count; i++)
                printf(" %s:%u",
                       is_rest(&script->step[i]) ? "rest" : sim_action_name(script->step[i].action),
                       (unsigned)script->step[i].argument);
        printf("\n");
        (void)play(script, true);
}

static double now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
        static const struct option options[] = {
                {"seed", 1, NULL, 's'},      {"seconds", 1, NULL, 't'},  {"seeds", 1, NULL, 'n'},
                {"steps", 1, NULL, 'c'},     {"total", 1, NULL, 'T'},    {"history", 0, NULL, 'h'},
                {"no-shrink", 0, NULL, 'k'}, {"replicas", 0, NULL, 'r'}, {NULL, 0, NULL, 0}};
        static struct script script;
        uint64_t seed = 1, seeds = UINT64_MAX, done = 0, steps = 0, total = UINT64_MAX;
        size_t length = 400;
        double began = now(), seconds = 1e9;
        bool history = false, shrinks = true, replicas = false;
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (option) {
                case 's':
                        seed = strtoull(optarg, NULL, 10);
                        break;
                case 't':
                        seconds = strtod(optarg, NULL);
                        break;
                case 'n':
                        seeds = strtoull(optarg, NULL, 10);
                        break;
                case 'T':
                        total = strtoull(optarg, NULL, 10);
                        break;
                case 'c':
                        length = strtoul(optarg, NULL, 10) % (STEPS_MAX / 2);
                        break;
                case 'h':
                        history = true;
                        break;
                case 'k':
                        shrinks = false;
                        break;
                case 'r':
                        replicas = true;
                        break;
                default:
                        return 2;
                }
        for (; done < seeds && steps < total && now() - began < seconds; done++) {
                bool is_broken;

                if (replicas) {
                        is_broken = replicas_play(seed + done, history, script.broken, &steps);
                        script.seed = seed + done;
                } else {
                        make(&script, seed + done, length);
                        is_broken = play(&script, history);
                        steps += script.steps;
                }
                if (is_broken) {
                        report(&script, steps, shrinks && !replicas);
                        return 1;
                }
        }
        if (seeds != UINT64_MAX && done < seeds) {
                printf("only %llu of %llu seeds, %llu steps, in the time that was given\n",
                       (unsigned long long)done, (unsigned long long)seeds, (unsigned long long)steps);
                return 1;
        }
        printf("%llu seeds from %llu on, %llu steps, %.0f steps a minute: every promise holds\n",
               (unsigned long long)done, (unsigned long long)seed, (unsigned long long)steps,
               (double)steps / (now() - began) * 60);
        return 0;
}
