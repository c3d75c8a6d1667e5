/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The worker process takes a key, reads the newest object from the store, runs the handler, carries the
 * answer out on the API server, and says DONE. It does one run at a time, and nothing blocks its loop:
 * heartbeats go on while a handler runs. Further runs wait in the worker for a moment (run/waiting.h).
 *
 * run/         reading the object, the handler and its answer
 * write/       what the answer changes about the object itself, and Events
 * dependents/  the objects that the answer wants (`children`)
 *
 * A run is a function that waits (run/run.c): it calls its parts one after the other, and each returns what follows.
 * What they share of the run is in run-state.h.
 */
#include "fiber/fiber.h"
#include "ipc/child.h"
#include "kube/client.h"

struct applied;
struct kind;
struct recorder;
struct recording;
struct run;
struct worker_watch;

#define WORKER_WAITING_MAX 64 /* runs; a supervisor gives fewer at once */

struct worker {
        struct child *child;
        struct message *config_message; /* owns what `config` points to */
        const struct message_config_worker *config;
        struct kube_client *client;
        struct fibers *fibers;
        struct worker_watch *watch; /* watch.h */
        size_t watch_count;
        struct run *run; /* under way; NULL: idle */
        struct {
                struct message *run[WORKER_WAITING_MAX]; /* RUN messages, in their order */
                size_t count;
                struct fiber *runner; /* carries them out, one after the other; NULL: there is none */
                sd_event_source *patience;
        } waiting; /* run/waiting.c: runs that have not begun */
        struct {
                struct kind *first;
                size_t count;
        } kinds;                     /* kinds.c */
        struct recorder *recorder;   /* of Events */
        struct recording *recording; /* of runs; NULL: not wanted */
        struct applied *applied;
        uint64_t refresh_serial; /* the credential that a REFRESH was sent for */
        uint64_t runs;           /* begun in this life */
        bool stopping;
        bool events_over; /* a stop does not wait for Events any more */
        /* Called when a run has ended and is freed, and when another part has ended that a stop waits for: a
         * serving handler, or the last Event. */
        void (*on_run_ended)(struct worker *worker);
        void (*on_part_ended)(struct worker *worker);
};

extern const struct child_operations worker_operations;
void worker_done(struct worker *worker);
