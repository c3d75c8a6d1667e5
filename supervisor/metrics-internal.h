/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Between metrics.c and metrics-text.c. */
#include "supervisor/metrics.h"

extern const uint64_t histogram_bound_usec[HISTOGRAM_BUCKETS];
