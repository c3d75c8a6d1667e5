/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How long the turns of the supervisor's loop take. A turn lasts from the return of the wait for events to
 * the next wait: one event source has its say. While it lasts no other one is heard: no heartbeat, no
 * reconciledctl, no gateway. So work that grows with the number of objects does a part of itself, for
 * TURN_USEC, and asks for another turn.
 *
 * Two clocks: the wall's (CLOCK_MONOTONIC) is the one that others wait by, and on a busy machine it also
 * counts other processes' use of the processor; the thread's own processor time counts only ours.
 */
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/duration.h"

struct supervisor;

#define TURN_USEC      (2 * UINT64_C(1000)) /* of work that can go on in the next turn */
#define TURN_SLOW_USEC (10 * UINT64_C(1000))

#define SETTLE_PRIORITY 10 /* of the end of a turn: after all messages that are there */

struct turn {
        uint64_t wall_usec, processor_usec;
        uint64_t ended_realtime;
        const char *what; /* static: the event source that had it; NULL: no turn yet */
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

/* Called before the first turn; each turn begins and ends with the other two. */
void turns_begin(struct turns *turns);
void turn_begin(struct turns *turns, uint64_t now); /* CLOCK_MONOTONIC */
void turn_end(struct turns *turns);

void turn_is(struct supervisor *supervisor, const char *what); /* static: names this turn */
/* Work that can go on in another turn goes on there. */
bool turn_is_spent(const struct supervisor *supervisor);
/* Asks for the end of the turn (loop.c): it comes once, when all messages that are there have been
 * delivered. */
void turn_settle_soon(struct supervisor *supervisor);
/* Calls once, when the loop has nothing else to do; the callback enables *source again for more. *source is
 * made by the first call and belongs to the caller. Negative errno. */
int turn_when_idle(struct supervisor *supervisor, sd_event_source **source, sd_event_handler_t callback);
