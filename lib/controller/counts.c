/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/counts.h"

void metrics_ended(struct watch_metrics *metrics, const struct message_done *done, uint64_t duration_usec)
{
        metrics->result[done->result]++;
        if (done->result == RESULT_RETRY)
                metrics->retries++;
        if (done->result == RESULT_SUCCESS && done->requeue_after_usec > 0)
                metrics->requeues++;
        metrics->handler_cpu_usec += done->handler_cpu_usec;
        if (done->handler_memory_peak > metrics->handler_memory_peak)
                metrics->handler_memory_peak = done->handler_memory_peak;
        metrics->handler_memory_kills += done->handler_out_of_memory;
        histogram_add(&metrics->work, duration_usec);
}
