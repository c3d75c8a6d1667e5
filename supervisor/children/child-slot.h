/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Slots of children: one for the credential process, one for each watch, one for each worker, one
 * for the gateway if there is one. They are made before the first fork and never move.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "children/child-process.h"
#include "ipc/message.h"

struct supervisor;
struct worker;

/* Counters that children send with their heartbeats: a few words each; they begin at zero with each
 * start. */
#define CHILD_COUNTERS 32

/* The counters of a child's last heartbeat. */
struct child_counters {
        struct {
                char name[32];
                uint64_t value;
        } counter[CHILD_COUNTERS];
        size_t count;
};

struct child_slot {
        struct supervisor *supervisor;
        size_t index; /* of the watch or worker */
        struct child_process process;
        uint64_t last_heartbeat; /* CLOCK_MONOTONIC: a suspended machine's children are not hung */
        uint64_t log_dropped;
        struct child_counters counters, past; /* past: of the processes that were here before this one */
        sd_event_source *eof_timer;
        bool killed;     /* by us */
        bool was_killed; /* it died of a SIGKILL, whoever sent it */
        bool blameless;  /* it reported that its object is not the reason of its end */
};

/* "watcher of watch widgets (pid 12)" */
void child_describe(const struct child_slot *child, char *buffer, size_t size);
size_t child_slot_number(
        const struct child_slot *child); /* of a watcher or worker: its slot (lib/os/slot.h) */
struct child_slot *worker_child(const struct worker *worker);
struct child_slot *child_gateway(const struct supervisor *supervisor); /* NULL if there is none */

bool workers_gone(const struct supervisor *supervisor);
bool children_gone(const struct supervisor *supervisor); /* all but the lease process, which goes last */

/* Sets the state, also for the channel and the controller. */
void child_set_state(struct child_slot *child, enum child_state state);
/* Tells the child to end: CHILD_STOPPING. grace: for the runs of a worker. */
void child_stop(struct child_slot *child, uint64_t grace_usec);
void child_signal(struct child_slot *child, int signal); /* CHILD_STOPPING; nothing where it is gone */

void counters_set(struct child_counters *counters, const struct message_heartbeat *heartbeat);
uint64_t counters_get(const struct child_counters *counters, const char *name); /* 0 if there is none */
/* Adds the counters of a process that has ended to `past`. */
void counters_keep(struct child_counters *past, const struct child_counters *counters);
/* The sum over a child and those that were in its slot before. */
uint64_t child_total(const struct child_slot *child, const char *counter);
uint64_t workers_sum(const struct supervisor *supervisor, const char *counter);
uint64_t gateway_count(const struct supervisor *supervisor, const char *counter); /* 0 without one */
