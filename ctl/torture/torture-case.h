/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cases of a torture: what happens in each of them, told step by step. */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "ctl/torture/case-kind.h"
#include "ctl/torture/end-state.h"
#include "ctl/torture/trial.h"

struct torture_case {
        const struct case_kind *kind;
        const cJSON *of; /* a write or a value, borrowed; NULL */
};

/* Runs without faults have shown this. */
struct torture {
        const struct trial *trial;
        char *collection; /* the path of the watch's objects without their namespaces: "/apis/GROUP/VERSION"; */
        char *plural;
        bool namespaced;
        cJSON *before;                /* outcome at the start */
        cJSON *expected[PHASE_COUNT]; /* outcome of each phase; NULL: not known yet */
        cJSON *of_value;              /* by words: outcome with that value */
        struct mask mask;
        cJSON *write[PHASE_COUNT]; /* lists of {words, match, nth} */
        cJSON *value;              /* list of {words, spec} */
        cJSON *refused;            /* set of the words of values that the handler refuses for good */
        bool watch_is_hidden;      /* its values are not shown */
        bool is_idempotent;        /* a further run writes nothing */
        unsigned bumps;            /* resourceVersions to be passed over at the start */
};

enum case_result { CASE_PASSED, CASE_FAILED, CASE_SKIPPED };

struct attempt {
        enum case_result result;
        struct text steps;   /* lines: what happened */
        struct text failure; /* lines: what is wrong with the end */
};

void attempt_done(struct attempt *attempt);

/* Runs one case; the attempt is filled. record: a folder for requests and answers; NULL. */
void case_run(struct torture *torture, const struct torture_case *which, const char *record,
              struct attempt *attempt);
/* A run without faults: outcome and writes become what is expected, or what differs is masked. */
void case_learn(struct torture *torture, struct attempt *attempt);
