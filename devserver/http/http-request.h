/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One request on its way: read whole, routed, answered. */
#include <cjson/cJSON.h>
#include <microhttpd.h>
#include <stdbool.h>

#include "base/text.h"
#include "devserver/server.h"

#define FAULTS_PER_REQUEST 16 /* at once */

struct request {
        struct server *server;
        struct MHD_Connection *connection;
        const char *method, *url;
        struct text body;
        struct resource *resource;
        /* From the URL. Owned. */
        char *group, *version, *namespace_name, *plural, *name, *subresource;
        /* The answer. */
        int status;
        struct text answer;
        const char *content_type;
        cJSON *warning;      /* a list of texts for as many headers, or NULL */
        struct watch *watch; /* instead of an answer */
        const char *verb;    /* "list", "watch" ... "discovery" */
        struct fault *fault[FAULTS_PER_REQUEST];
        size_t fault_count;
        uint64_t wrote;   /* the version that it has made; 0: it has changed nothing */
        long retry_after; /* header; 0: as the status has it, -1: none */
        struct flow *flow;
        bool logged, too_large;
        bool hang, drop; /* no answer: the connection stays open, or breaks */
        bool delayed;    /* its answer has waited, or waits */
};

/* A parameter of the query, borrowed; NULL when absent. */
const char *request_argument(const struct request *request, const char *name);
bool request_flag(const struct request *request, const char *name); /* it is there, and not "false" or "0" */
bool request_is_dry_run(const struct request *request);
bool request_is_for_status(const struct request *request); /* of the subresource */
/* The manager that is to own what the request writes. The caller's; NULL: no memory. */
char *request_field_manager(const struct request *request);
/* Frees the request, but not what it has begun (watch, flow, faults). */
void request_free(struct request *request);
