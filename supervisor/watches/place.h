/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The supervisor's side of a watch, beside the place that the controller has for it
 * (lib/controller/controller-watch.h): its child, its trouble in words, timers.
 */
#include <systemd/sd-event.h>

#include "controller/controller-watch.h"
#include "metric/registry.h"

struct child_slot;
struct supervisor;

struct memory_retry {
        sd_event_source *timer; /* then the watch begins again */
        unsigned tries;         /* so far, without being in sync */
        bool is_due;            /* it begins again when none of its runs is in flight */
};

struct watch_place {
        struct supervisor *supervisor;
        struct child_slot *child;
        char *store_folder;         /* in memory, where its objects are confidential */
        bool keeps_previous;        /* there is a place for that */
        struct watch_trouble heard; /* of its watcher */
        char *heard_namespace; /* the one that is refused, of several; NULL or "": the trouble is of all */
        struct memory_retry memory_retry;
        uint64_t degraded_realtime, failures;
        char *degraded_reason, *missing_namespaces, *refused_namespaces; /* may be NULL */
        sd_event_source *owed_source;                /* the next page of rows for its watcher */
        uint64_t metrics_dropped[METRIC_DROP_COUNT]; /* of its handler, by reason */
        char limits_weakened[320]; /* of its handler, and how they hold; "" when as they are meant */
};

static inline struct watch_place *watch_place_of(const struct watch *watch)
{
        return watch->userdata;
}

static inline struct child_slot *child_of(const struct watch *watch)
{
        return watch_place_of(watch)->child;
}

static inline struct supervisor *supervisor_of(const struct watch *watch)
{
        return watch_place_of(watch)->supervisor;
}
