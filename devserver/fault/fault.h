/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Faults: what a test of a client wants to go wrong, for which requests. A fault is read from JSON (or YAML:
 * fault-read.h), matched against each request as it comes, and acts either in the place of the answer
 * (status, hang, reset) or on the body as it flows (stream/flow.h). docs/devserver.md describes every
 * member.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "devserver/http/http-request.h"

/* The requests that a fault acts on; all texts are owned. */
struct fault_match {
        /* NULL: any; path and user_agent are patterns with * */
        char *verb, *resource, *namespace_name, *name, *path, *user_agent;
        int continued; /* -1: any; 0, 1: a continue page or not */
};

enum fault_close { CLOSE_NOT, CLOSE_CLEAN, CLOSE_CUT, CLOSE_STALL };

struct fault {
        struct fault *next;
        unsigned references; /* the table, and the requests it acts on */
        uint64_t id, after, times, seen, hit;
        struct fault_match match;
        cJSON *json; /* as it was given */
        /* in the place of the answer */
        int status;
        long retry_after; /* -1: no header */
        char *reason, *message, *body, *content_type;
        const cJSON *causes; /* inside json */
        bool hang, reset;
        bool carried_out;      /* the request does what it wants, and only its answer is another one */
        uint64_t latency_usec; /* whatever is answered is answered so much later */
        char *warning;         /* goes with it */
        /* on the body */
        bool has_position, at_byte;
        uint64_t position; /* lines or bytes that pass before */
        struct text payload;
        enum fault_close close;
        uint64_t bytes_per_second, pieces;
        bool no_bookmarks, no_initial_events_end;
};

/* Appends the faults from this id on, as a JSON list with what they have seen and hit. */
void faults_write(const struct server *server, uint64_t first, struct text *json);
/* Removes one, or all (0). Whether there was one. */
bool faults_remove(struct server *server, uint64_t id);
void fault_unref(struct fault *fault); /* NULL: nothing */

void fault_match_done(struct fault_match *match); /* frees what is in it */
bool fault_matches(const struct fault_match *match, const struct request *request);

/* Which faults act on this request; counts them. */
void faults_choose(struct request *request);
/* Whether the request is carried out: no fault answers in place of the server, or the first that does wants
 * it so. */
bool faults_let_through(const struct request *request);
/* If a fault answers in place of the server, the first one's answer replaces that of the request. */
void faults_answer(struct request *request);
/* How long the answer waits; what the request does is done. */
uint64_t faults_latency(const struct request *request);
/* Whether one of the request's faults says so. */
bool faults_forbid_bookmarks(const struct request *request);
bool faults_forbid_initial_end(const struct request *request);
bool faults_need_flow(const struct request *request);
