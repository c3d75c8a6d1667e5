/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/child-slot.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

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

void child_describe(const struct child_slot *child, char *buffer, size_t size)
{
        const char *name = role_title(child->process.role);

        if (child->process.role == ROLE_WATCHER)
                snprintf(buffer, size, "%s of watch %s (pid %d)", name,
                         child->supervisor->controller.watch[child->index].config->name, child->process.pid);
        else if (child->process.role == ROLE_WORKER)
                snprintf(buffer, size, "%s %zu (pid %d)", name, child->index, child->process.pid);
        else
                snprintf(buffer, size, "%s (pid %d)", name, child->process.pid);
}

struct child_slot *worker_child(const struct worker *worker)
{
        const struct controller *controller = worker->controller;
        struct supervisor *supervisor = controller->userdata;

        assert(worker >= controller->worker && worker < controller->worker + controller->worker_count);
        return &supervisor->worker_child[worker - worker->controller->worker];
}

size_t child_slot_number(const struct child_slot *child)
{
        return child->index +
               (child->process.role == ROLE_WORKER ? child->supervisor->controller.watch_room : 0);
}

void child_set_state(struct child_slot *child, enum child_state state)
{
        struct controller *controller = &child->supervisor->controller;

        child_process_set_state(&child->process, state);
        if (child->process.role == ROLE_WATCHER)
                controller->watch[child->index].is_up = state == CHILD_RUNNING;
        if (child->process.role == ROLE_WORKER)
                controller->worker[child->index].is_up = state == CHILD_RUNNING;
}

bool workers_gone(const struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->child_count; i++)
                if (supervisor->child[i].process.role == ROLE_WORKER &&
                    supervisor->child[i].process.state != CHILD_GONE)
                        return false;
        return true;
}

bool children_gone(const struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->child_count; i++)
                if (supervisor->child[i].process.state != CHILD_GONE &&
                    supervisor->child[i].process.role != ROLE_LEASE)
                        return false;
        return true;
}

void child_signal(struct child_slot *child, int signal)
{
        if (child->process.state == CHILD_GONE || child->process.pid <= 0)
                return;
        child_set_state(child, CHILD_STOPPING);
        child->killed = child->killed || signal == SIGKILL;
        child_process_signal(&child->process, signal);
}

void child_stop(struct child_slot *child, uint64_t grace_usec)
{
        child_process_stop(&child->process, grace_usec);
        child_set_state(child, CHILD_STOPPING);
}

struct child_slot *child_gateway(const struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->child_count; i++)
                if (supervisor->child[i].process.role == ROLE_GATEWAY)
                        return &supervisor->child[i];
        return NULL;
}
