/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The worker process takes a key, reads the newest object from the store, runs the handler, carries the
 * answer out on the API server, and says DONE. One handler is at work at a time; other runs wait for the API server
 * meanwhile, or for a moment for that handler's end (waiting.h). Nothing blocks the loop.
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

#define WORKER_WAITING_MAX 128 /* runs; a supervisor gives no more at once */

struct worker {
        struct child *child;
        struct message *config_message; /* owns what `config` points to */
        const struct message_config_worker *config;
        struct kube_client *client;
        struct fibers *fibers;
        struct worker_watch *watch; /* watch.h */
        size_t watch_count;
        struct run *runs;       /* that have begun, in their order */
        struct run *at_handler; /* whose handler is at work, and takes no other run; NULL: none is */
        struct {
                struct message
                        *run[WORKER_WAITING_MAX]; /* RUN messages that have not begun, in their order */
                size_t count;
                size_t runners; /* fibers: each carries out one run after the other */
                size_t busy;    /* of these: do not wait for the API server */
                sd_event_source *patience;
        } waiting;         /* waiting.c */
        struct slot *slot; /* whose code runs, for the case that this ends the worker */
        struct {
                struct kind *first;
                size_t count;
        } kinds;                     /* kinds.c */
        struct recorder *recorder;   /* of Events */
        struct recording *recording; /* of runs; NULL: not wanted */
        struct applied *applied;
        struct message_lead lead;   /* of this replica; epoch 0: there is only one */
        sd_event_source *lead_over; /* its end */
        uint64_t refresh_serial;    /* the credential that a REFRESH was sent for */
        uint64_t begun;             /* runs, in this life */
        bool stopping;
        bool events_over; /* a stop does not wait for Events any more */
        /* run_carry_out(), which calls all that a run does; so what begins runs does not call it by its name. */
        int (*carry_out)(struct worker *worker, const struct message_run *order) _suspends_;
        /* Called when a run has ended and is freed, and when another part has ended that a stop waits for: a
         * serving handler, or the last Event. */
        void (*on_run_ended)(struct worker *worker);
        void (*on_part_ended)(struct worker *worker);
};

extern const struct child_operations worker_operations;
void worker_done(struct worker *worker);
