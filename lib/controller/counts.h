/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Counts of a watch, for metrics: a few words each; they begin at zero with each start. */
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "ipc/message.h"

struct watch_metrics {
        uint64_t adds, retries, requeues;
        uint64_t tried_again; /* objects that were given up and got one more attempt (due/retry.c) */
        uint64_t result[RESULT_COUNT];
        uint64_t handler_cpu_usec, handler_memory_peak, handler_memory_kills;
        struct histogram queue, work; /* waiting; running */
};

void metrics_ended(struct watch_metrics *metrics, const struct message_done *done, uint64_t duration_usec);
