/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the supervisor counts, and how it is told: the gateway gets one OpenMetrics document and one verdict
 * of health with each heartbeat. Names are those that Kubernetes people know (client-go's workqueue,
 * controller-runtime) where the thing is the same; ours begin with reconciled_. docs/metrics.md lists them.
 *
 * Counters belong to their watch or child, cost a few words each, and begin at zero with each start.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "controller/counts.h"
#include "ipc/message.h"

struct supervisor;
struct child_slot;

#define CHILD_COUNTERS 32

/* The counters of a child's last heartbeat. */
struct child_counters {
        struct {
                char name[32];
                uint64_t value;
        } counter[CHILD_COUNTERS];
        size_t count;
};

struct health {
        bool live, ready;
        char reason[256]; /* why not; "" when both */
};

void counters_set(struct child_counters *counters, const struct message_heartbeat *heartbeat);
/* Of all workers together. */
uint64_t workers_sum(const struct supervisor *supervisor, const char *counter);
uint64_t gateway_count(const struct supervisor *supervisor, const char *counter); /* 0 without one */
uint64_t counters_get(const struct child_counters *counters, const char *name);
/* past gets what the counters of a process that has ended were. */
void counters_keep(struct child_counters *past, const struct child_counters *counters);
/* Of a child and those that were in its place before. */
uint64_t child_total(const struct child_slot *child, const char *counter);

/* live: every process is heard in time. ready: and every watch has been in sync since the start. */
void health_get(const struct supervisor *supervisor, struct health *ret);
/* -ENOMEM when the text has failed. */
int metrics_write(const struct supervisor *supervisor, struct text *text);
/* To the gateway, if there is one and it keeps up. */
void metrics_push(struct supervisor *supervisor);
/* The same where health is another one than the gateway was told: `health --ready` and /readyz are one. */
void metrics_push_change(struct supervisor *supervisor);
