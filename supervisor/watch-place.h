/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The supervisor's side of a watch, beside the place that the controller has for it (lib/controller/watch.h):
 * its child, its trouble as people are told, timers.
 */
#include <systemd/sd-event.h>

#include "controller/watch.h"

struct child_slot;
struct supervisor;

#define WATCHES_SPARE                                                                                       \
        16 /* places for watches that reloads add; when they are used up, one restarts in place */

/* room.c: a watch that stood still for lack of memory. */
struct room {
        sd_event_source *timer; /* then it is begun anew */
        unsigned tries;         /* so far, without being in sync */
        bool begun;             /* its successor is such a try */
        bool anew;              /* it is one, and has not been in sync */
};

struct watch_place {
        struct supervisor *supervisor;
        struct child_slot *child;
        char *store_folder;         /* in memory, where its objects are confidential */
        bool cancelled;             /* it leaves: what runs has taken too long, and is ended */
        uint64_t leave_by;          /* CLOCK_MONOTONIC: then it is cancelled */
        struct watch_trouble heard; /* of its watcher */
        struct room room;
        uint64_t degraded_realtime, failures;
        char *degraded_reason, *missing_namespaces; /* may be NULL */
        sd_event_source *owed_source;               /* the next page of rows for its watcher */
        char limits_weakened[320]; /* of its handler, and how they hold; "" when as they are meant */
        char handler_unread[256];  /* files of its handler that cannot be read, and why; "" */
};

struct watch_place *place_of(const struct watch *watch);
struct child_slot *child_of(const struct watch *watch);
struct supervisor *supervisor_of(const struct watch *watch);

size_t watches_in_force(const struct supervisor *supervisor);
int watches_new(struct supervisor *supervisor);
/* A free place, for the watch of this configuration. -ENOSPC: there is none; -EAGAIN: another turn. */
int watch_begin(struct supervisor *supervisor, const struct config_watch *config, struct watch **ret);
/* Its watcher is gone and nothing of it runs; -EBUSY; -EAGAIN: it takes another turn. */
int watch_end(struct watch *watch);
void watches_free(struct supervisor *supervisor);
