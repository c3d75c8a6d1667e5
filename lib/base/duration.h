/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Durations and clocks. Everything inside is microseconds in uint64_t; people write "1h30m", "2m", "250ms".
 */
#include <stddef.h>
#include <stdint.h>

#define USEC_PER_MSEC   UINT64_C(1000)
#define USEC_PER_SEC    UINT64_C(1000000)
#define USEC_PER_MINUTE (60 * USEC_PER_SEC)
#define USEC_PER_HOUR   (60 * USEC_PER_MINUTE)
#define USEC_INFINITY   UINT64_MAX

/* Parses one or more of <number><unit>, unit one of us, ms, s, m, h, d; the number may have a fraction
 * ("1.5s"). Returns 0, -EINVAL if the text is no duration, -ERANGE if it does not fit. */
int duration_parse(const char *string, uint64_t *ret_usec);

/* Writes the shortest exact form ("1h30m", "250ms", "0s"); returns `buffer`. 64 bytes are always enough. */
const char *duration_format(uint64_t usec, char *buffer, size_t size);

/* CLOCK_BOOTTIME: for timers and deadlines; comparable between processes of one machine. */
uint64_t clock_boottime_usec(void);
/* CLOCK_MONOTONIC: for times within this process; the clock stops while the machine sleeps. */
uint64_t clock_monotonic_usec(void);
/* CLOCK_REALTIME: for what is kept across restarts. */
uint64_t clock_realtime_usec(void);

/* A histogram of durations, as in OpenMetrics. A plain value: empty if zeroed. */
#define HISTOGRAM_BUCKETS 14

struct histogram {
        uint64_t bucket[HISTOGRAM_BUCKETS]; /* not cumulative; above the last bound: in `count` only */
        uint64_t count, sum_usec;
};

extern const uint64_t histogram_bound_usec[HISTOGRAM_BUCKETS]; /* upper bounds, included */

void histogram_add(struct histogram *histogram, uint64_t usec);
