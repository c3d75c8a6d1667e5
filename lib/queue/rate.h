/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How often the handler of a watch may run: `handler.rate`. Times as everywhere in the queue: CLOCK_BOOTTIME usec. */
#include "queue/queue.h"

/* How often runs of the watch that ask its handler may begin: up to `burst` at once, and one more each `interval_nsec`.
 * interval_nsec 0: no limit. The limit stays, whatever else is done to the watch. */
void queue_set_rate(struct queue *queue, unsigned watch, uint64_t interval_nsec, unsigned burst);

/* How often the handler of a watch may run. */
struct queue_rate {
        uint64_t next; /* before that nothing begins for lack of a token; 0: no limit, or a full bucket */
        uint64_t waited_runs, waited_usec; /* that waited for a token, and how long, since the start */
};
struct queue_rate queue_rate(const struct queue *queue, unsigned watch);
