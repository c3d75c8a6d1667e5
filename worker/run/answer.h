/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A handler's answer: one JSON object on stdout. A wrong type or an unknown key is an error of the handler,
 * whose text says where. Stdout that does not begin with '{' is output, not an answer. What may be large stays a text: as a tree
 * it would be many times as large, and an answer waits until the API server has taken it.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "object/scan.h"

struct answer {
        cJSON *root;             /* owns the trees; NULL: no answer */
        const cJSON *events;     /* list or NULL */
        const cJSON *conditions; /* list or NULL */
        const cJSON *metrics;    /* list or NULL */
        /* As the handler wrote them: inside its output. Without a start: there is none. */
        struct span status_text, patch_text;       /* objects */
        struct span dependents_text, patches_text; /* lists; if there is none, they stay as they are */
        bool status_has_conditions;
        const char *message;         /* or NULL */
        const char *error;           /* the handler says that it has failed, and why; or NULL */
        bool not_done;               /* `done: false`: the cleanup goes on */
        bool permanent;              /* ... and that it will, until the object changes */
        bool fatal;                  /* ... and that the operator should end (allowFatal) */
        uint64_t requeue_after_usec; /* 0 if there is none */
        uint64_t requeue_at_usec;    /* of CLOCK_REALTIME; 0 if there is none */
        uint64_t retry_after_usec;   /* with an error: replaces the backoff; 0 if there is none */
};

/* 0: `ret` filled (empty for empty output); 1: the output is no answer; -EINVAL with the place in `error`,
 * -ENOMEM. `output` must live as long as the answer. */
int answer_parse(const char *output, size_t size, struct answer *ret, struct error *error);
void answer_done(struct answer *answer);
/* A handler that always says a time that has passed is not run all the time. */
#define REQUEUE_SOONEST_USEC UINT64_C(1000000)
/* The delay until the object runs again, from now (CLOCK_REALTIME) on: the earlier of the answer's times; 0 if
 * it has none. */
uint64_t answer_requeue_after(const struct answer *answer, uint64_t realtime);
/* The answer's condition of this type, borrowed; NULL: it has none. */
const cJSON *answer_condition(const struct answer *answer, const char *type);
