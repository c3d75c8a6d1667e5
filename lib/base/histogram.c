/* SPDX-License-Identifier: Apache-2.0 */
#include "base/histogram.h"

const uint64_t histogram_bound_usec[HISTOGRAM_BUCKETS] = {
        100,     1000,    5000,     10000,    50000,    100000,    500000,
        1000000, 5000000, 10000000, 30000000, 60000000, 300000000, 600000000,
};

void histogram_add(struct histogram *histogram, uint64_t usec)
{
        histogram->count++;
        histogram->sum_usec += usec;
        for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
                if (usec <= histogram_bound_usec[i]) {
                        histogram->bucket[i]++;
                        return;
                }
}
