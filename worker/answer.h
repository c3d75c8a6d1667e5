/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a handler answers: one JSON object on stdout. Known keys only; a wrong type or an unknown key is an
 * error of the handler that says where. Stdout that does not begin with '{' is output, not an answer.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct answer {
        cJSON *root;         /* owns the rest; NULL: no answer */
        const cJSON *status; /* object or NULL */
        const cJSON *patch;  /* object or NULL */
        const char *message; /* or NULL */
        uint64_t requeue_after_usec;
};

/* 0: `ret` filled (empty for empty output); 1: the output is no answer; -EINVAL with the place in `error`.
 */
int answer_parse(const char *output, size_t size, struct answer *ret, struct error *error);
void answer_done(struct answer *answer);

/* RFC 7386 on `target` (may be NULL), in place; returns the new target, owned by the caller, NULL on lack of
 * memory. */
cJSON *merge_patch(cJSON *target, const cJSON *patch);
