/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Durations by size, as OpenMetrics tells them. A plain value: zeroed, it is empty. */
#include <stdint.h>

#define HISTOGRAM_BUCKETS 14

struct histogram {
        uint64_t bucket[HISTOGRAM_BUCKETS]; /* not cumulative; above the last bound: in `count` only */
        uint64_t count, sum_usec;
};

extern const uint64_t histogram_bound_usec[HISTOGRAM_BUCKETS]; /* upper bounds, included */

void histogram_add(struct histogram *histogram, uint64_t usec);
