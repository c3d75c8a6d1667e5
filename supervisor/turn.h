/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How long the turns of the supervisor's loop take. A turn is what happens between the return of the wait
 * for events and the next wait: one event source has its say. While it lasts nobody else is heard: no
 * heartbeat, no reconciledctl, no gateway. So whatever grows with the number of objects does a part of its
 * work, for TURN_USEC, and asks for another turn.
 *
 * Two clocks: the wall's (CLOCK_MONOTONIC) is what others wait for, and on a busy machine it counts whoever
 * had the processor meanwhile; the thread's own processor time is what we have made of it.
 */
#include <stdbool.h>
#include <stdint.h>

#include "supervisor/metrics.h"

#define TURN_USEC      (2 * UINT64_C(1000)) /* of work that can go on in the next turn */
#define TURN_SLOW_USEC (10 * UINT64_C(1000))

struct turn {
        uint64_t wall_usec, processor_usec;
        uint64_t ended_realtime;
        const char *what; /* static: who had it; "" */
};

struct turns {
        uint64_t began_usec;     /* CLOCK_MONOTONIC */
        uint64_t processor_nsec; /* when the processor's clock was read last */
        uint64_t unread_usec;    /* of the turns since then */
        unsigned unread;
        const char *what;
        uint64_t slow;                          /* longer than TURN_SLOW_USEC of processor time */
        struct turn longest, longest_processor; /* since the start, by either clock */
        struct histogram wall, processor;
};
