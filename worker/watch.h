/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The watches whose objects this worker handles, and the stores of the kinds that those own or relate to. */
#include "ipc/message.h"
#include "jq/program.h"
#include "kube/path.h"
#include "process/process.h"
#include "store/store.h"
#include "worker/worker.h"

#define WATCH_FEARED_MAX 16

struct coprocess;
struct previous;

struct worker_watch {
        const struct record_watch *config;
        struct store *reader;
        struct previous *previous; /* NULL: not opened yet, or not wanted */
        bool previous_fails;       /* the last attempt to keep an object there has failed, and was told */
        struct kube_resource resource; /* valid once `discovered` */
        bool discovered;
        bool told_status_dropped;           /* the warning about fields that the server drops was logged */
        struct jq_program *trigger_program; /* of trigger: {jq: ...}; NULL if there is none */
        struct jq_program *names_program;   /* names the related objects; NULL: all are related */
        char **environment; /* the handler's, as far as each run has the same; NULL: not made yet */
        size_t environment_count;
        struct process_user *user;   /* that the handler runs as; NULL: the worker's own */
        struct coprocess *coprocess; /* of a serving handler or a plugin, once it has run; NULL */
        struct run *leader;          /* who drives its batch; NULL if there is none */
        struct fiber *gathering;     /* the leader, while it waits for others */
        /* run/together/asked.c */
        size_t apart;                      /* runs that have the process for themselves */
        uint64_t feared[WATCH_FEARED_MAX]; /* objects over which it died, as hashes of their UIDs; 0 */
        unsigned feared_next;
};

/* Makes worker->watch from its configuration. 0, -EPROTO (the configuration makes no sense), or the errno of
 * a store, a program or a user. What was made so far belongs to the worker also after a failure. */
int watches_new(struct worker *worker);
void watches_free(struct worker *worker);
/* Borrowed; NULL: there is none of this name. */
struct worker_watch *worker_watch_find(const struct worker *worker, const char *name);
