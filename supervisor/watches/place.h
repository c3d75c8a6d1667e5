/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The supervisor's side of a watch, beside the place that the controller has for it
 * (lib/controller/watch.h): its child, its trouble as people are told, timers.
 */
#include <systemd/sd-event.h>

#include "controller/watch.h"

struct child_slot;
struct supervisor;

struct memory_retry {
        sd_event_source *timer; /* then the watch is begun anew */
        unsigned tries;         /* so far, without being in sync */
        bool begun;             /* its successor is such a try */
        bool anew;              /* it is one, and has not been in sync */
};

struct watch_place {
        struct supervisor *supervisor;
        struct child_slot *child;
        char *store_folder;         /* in memory, where its objects are confidential */
        bool cancelled;             /* it leaves: its runs have taken too long, and are ended */
        uint64_t leave_by;          /* CLOCK_MONOTONIC: then it is cancelled */
        struct watch_trouble heard; /* of its watcher */
        struct memory_retry memory_retry;
        uint64_t degraded_realtime, failures;
        char *degraded_reason, *missing_namespaces; /* may be NULL */
        sd_event_source *owed_source;               /* the next page of rows for its watcher */
        char limits_weakened[320]; /* of its handler, and how they hold; "" when as they are meant */
};

struct watch_place *place_of(const struct watch *watch);
struct child_slot *child_of(const struct watch *watch);
struct supervisor *supervisor_of(const struct watch *watch);
size_t watches_in_force(const struct supervisor *supervisor); /* those that do not leave */
