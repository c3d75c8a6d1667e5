/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/limits/lanes.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void lanes_die(const char *what)
{
        fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
        exit(1);
}

static double now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

struct lane_program lanes_start(char **command)
{
        static char *const environment[] = {NULL};
        posix_spawn_file_actions_t actions;
        int in[2], out[2];
        pid_t pid;

        if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
                lanes_die("pipe2");
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        errno = posix_spawn(&pid, command[0], &actions, NULL, command, environment);
        if (errno != 0)
                lanes_die(command[0]);
        posix_spawn_file_actions_destroy(&actions);
        close(in[0]);
        close(out[1]);
        return (struct lane_program){pid, in[1], out[0]};
}

struct lane_order lanes_order(int argc, char **argv)
{
        struct lane_order order = {0};

        if (argc > 4)
                order = (struct lane_order){strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10),
                                            strtoul(argv[3], NULL, 10), argv + 4};
        if (order.lanes == 0) {
                fprintf(stderr, "%s COUNT LANES REQUEST-BYTES PROGRAM [ARGUMENT...]\n",
                        program_invocation_short_name);
                exit(64);
        }
        return order;
}

void lanes_run(const struct lane_order *order, const char *request,
               void (*lane)(const struct lane_order *order, size_t number, const char *request))
{
        double begin = now();

        for (size_t i = 0; i < order->lanes; i++) {
                pid_t pid = fork();

                if (pid < 0)
                        lanes_die("fork");
                if (pid == 0) {
                        lane(order, i, request);
                        _exit(0);
                }
        }
        for (size_t i = 0; i < order->lanes; i++) {
                int status;

                if (wait(&status) < 0 || status != 0)
                        lanes_die("a lane failed");
        }
        printf("%.6f\n", now() - begin);
}
