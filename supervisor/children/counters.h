/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Counters that children send with their heartbeats: a few words each; they begin at zero with each
 * start. */
#include <stddef.h>
#include <stdint.h>

#include "ipc/message.h"

struct child_slot;
struct supervisor;

#define CHILD_COUNTERS 32

/* The counters of a child's last heartbeat. */
struct child_counters {
        struct {
                char name[32];
                uint64_t value;
        } counter[CHILD_COUNTERS];
        size_t count;
};

void counters_set(struct child_counters *counters, const struct message_heartbeat *heartbeat);
uint64_t counters_get(const struct child_counters *counters, const char *name); /* 0: there is none */
/* Adds the counters of a process that has ended to `past`. */
void counters_keep(struct child_counters *past, const struct child_counters *counters);
/* The sum over a child and those that were in its slot before. */
uint64_t child_total(const struct child_slot *child, const char *counter);
uint64_t workers_sum(const struct supervisor *supervisor, const char *counter);
uint64_t gateway_count(const struct supervisor *supervisor, const char *counter); /* 0 without one */
