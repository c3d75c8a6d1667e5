/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The devserver's one struct: what its requests act on. Private to devserver/. A request is read by daemon.c
 * and passes server_handle() (routes.c), the one place that every request passes; lists are linked through
 * their entries' `next`.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <systemd/sd-event.h>

#include "devserver/objects/gc-queue.h"
#include "devserver/storage/storage.h"
#include "http/http-loop.h"

struct account_token;
struct backup;
struct connection;
struct fault;
struct flow;
struct snapshot;
struct watch;

struct server {
        struct storage storage;
        sd_event *event;
        struct http_loop loop; /* of the daemon */
        struct watch *watch;
        struct snapshot *snapshot;
        uint64_t last_snapshot;
        struct fault *fault;
        uint64_t last_fault;
        struct flow *flow;
        struct connection *connection;
        struct backup *backup;
        char *token;
        struct account_token *account_token; /* all that were handed out and have not expired */
        uint64_t token_life_usec;            /* at most; 0: as long as is asked for */
        FILE *request_log;
        uint64_t bookmark_usec;
        bool watch_list; /* sendInitialEvents works */
        bool load_as_is; /* what a cluster made of the objects stays; what is missing for them is made up */
        unsigned version_minor; /* the claimed version: 1.N */
        struct gc_queue gc;
        char *certificate, *key;             /* PEM, with TLS */
        char *authority, *authority_key;     /* PEM; what signed it, where the server did so itself */
        char *url, *kubeconfig;              /* of the kubeconfig: its path, or NULL */
        bool certificate_due, authority_due; /* to be renewed when the request is answered */
        bool is_ending;                      /* its last turn: no connection is suspended any more */
        sd_event_source *renew_source;
};
