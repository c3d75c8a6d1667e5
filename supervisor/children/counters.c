/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/counters.h"

#include <string.h>

#include "supervisor/children/child-slot.h"
#include "supervisor/supervisor.h"

void counters_set(struct child_counters *counters, const struct message_heartbeat *heartbeat)
{
        counters->count = 0;
        for (size_t i = 0; i < heartbeat->counter_count && counters->count < CHILD_COUNTERS; i++) {
                size_t n = counters->count++;

                snprintf(counters->counter[n].name, sizeof(counters->counter[n].name), "%s",
                         heartbeat->counter[i].name);
                counters->counter[n].value = heartbeat->counter[i].value;
        }
}

uint64_t counters_get(const struct child_counters *counters, const char *name)
{
        for (size_t i = 0; i < counters->count; i++)
                if (strcmp(counters->counter[i].name, name) == 0)
                        return counters->counter[i].value;
        return 0;
}

/* All together, so that a sum over children never falls when one takes another one's place. */
void counters_keep(struct child_counters *past, const struct child_counters *counters)
{
        for (size_t i = 0; i < counters->count; i++) {
                size_t n = 0;

                while (n < past->count && strcmp(past->counter[n].name, counters->counter[i].name) != 0)
                        n++;
                if (n == CHILD_COUNTERS)
                        return;
                if (n == past->count) {
                        past->counter[n] = counters->counter[i];
                        past->count++;
                } else {
                        past->counter[n].value += counters->counter[i].value;
                }
        }
}

uint64_t child_total(const struct child_slot *child, const char *counter)
{
        return counters_get(&child->past, counter) + counters_get(&child->counters, counter);
}

uint64_t workers_sum(const struct supervisor *supervisor, const char *counter)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < supervisor->controller.worker_count; i++)
                sum += child_total(worker_child(&supervisor->controller.worker[i]), counter);
        return sum;
}

uint64_t gateway_count(const struct supervisor *supervisor, const char *counter)
{
        const struct child_slot *gateway = child_gateway(supervisor);

        return gateway ? counters_get(&gateway->counters, counter) : 0;
}
