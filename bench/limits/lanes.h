/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the limits of running programs have in common. All of it ends the process on a failure, with a word.
 */
#include <stddef.h>
#include <sys/types.h>

struct lane_program {
        pid_t pid;
        int in, out; /* our ends of its stdin and stdout */
};

_Noreturn void lanes_die(const char *what);
struct lane_program lanes_start(char **command);

/* COUNT LANES REQUEST-BYTES PROGRAM [ARGUMENT...] */
struct lane_order {
        size_t count, lanes, size;
        char **command;
};

struct lane_order lanes_order(int argc, char **argv);
/* One process a lane, as there is one worker a lane; prints the seconds until all are done. */
void lanes_run(const struct lane_order *order, const char *request,
               void (*lane)(const struct lane_order *order, size_t number, const char *request));
