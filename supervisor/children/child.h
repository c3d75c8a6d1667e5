/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Slots of children: one for the credential process, one for each place of a watch, one for each worker, one
 * for the gateway if there is one. They are made before the first fork and never move.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "ipc/channel.h"
#include "ipc/role.h"
#include "ipc/spawner/program.h"
#include "supervisor/children/counters.h"

struct supervisor;
struct worker;

enum child_kind { KIND_CREDENTIAL, KIND_WATCHER, KIND_WORKER, KIND_GATEWAY, KIND_COUNT };

struct child_slot {
        struct supervisor *supervisor;
        enum child_kind kind;
        size_t index; /* of the watch or worker */
        enum child_state state;
        pid_t pid;
        struct channel *channel;
        uint64_t last_heartbeat; /* CLOCK_MONOTONIC: a suspended machine's children are not hung */
        uint64_t log_dropped;
        struct child_counters counters, past; /* past: of the processes that were here before this one */
        sd_event_source *eof_timer;
        uint64_t
                end_by; /* CLOCK_MONOTONIC: a child that a reload has told to end is killed then; 0: no such */
        bool killed;    /* by us */
        bool blameless; /* it says that its object is not why it ends */
};

/* "watcher of watch widgets (pid 12)" */
void child_describe(const struct child_slot *child, char *buffer, size_t size);
const char *child_busy_with(const struct child_slot *child); /* the key of a worker's run; NULL */
const char *child_binary(enum child_kind kind);              /* "reconciled-watcher" */
enum role child_role(enum child_kind kind);
enum spawner_program child_program(enum child_kind kind);
bool child_is_used(const struct child_slot *child); /* false: the place of a watch that there is not */
struct child_slot *worker_child(const struct worker *worker);
struct child_slot *child_gateway(const struct supervisor *supervisor); /* NULL: there is none */

bool children_all(const struct supervisor *supervisor, enum child_kind kind, enum child_state state);
bool children_gone(const struct supervisor *supervisor);

/* Tells the channel and the controller, too. */
void child_set_state(struct child_slot *child, enum child_state state);
/* The child is told to end, and CHILD_STOPPING; grace: for the runs of a worker. */
void child_stop(struct child_slot *child, uint64_t grace_usec);
void child_signal(struct child_slot *child, int signal); /* CHILD_STOPPING; nothing where it is gone */
