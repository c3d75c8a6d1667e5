/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The pace of attempts while they fail: a first delay, doubled with each failure, capped. Delays are
 * microseconds. The delays are spread on purpose in different ways:
 *
 *   watcher      requests to the server   uniform in [d, 2d), as client-go does
 *   controller   runs of an object        up to a tenth more, by randomness that a test can replay
 *   credential   plugins, tokens          not spread: one process of an operator asks, and rarely
 */
#include <stdint.h>

uint64_t backoff_next(uint64_t delay, uint64_t max); /* the double, at most `max` */
/* The delay after this many failures; after none and after the first one it is `first`. */
uint64_t backoff_after(uint64_t first, uint64_t max, uint64_t failures);

/* A random number less than `below`; 0 for 0. Each process has numbers of its own. Not for secrets. */
uint64_t random_below(uint64_t below);
