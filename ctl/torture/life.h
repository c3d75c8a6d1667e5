/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One run of a case: its rig, what has happened so far, and the objects of the watch. Private to ctl/torture/. */
#include <cjson/cJSON.h>
#include <stdint.h>

#include "ctl/torture/rig.h"
#include "ctl/torture/torture-case.h"

struct life {
        struct torture *torture;
        const struct torture_case *which; /* NULL: no fault */
        struct attempt *attempt;
        struct rig rig;
        struct error error;
        uint64_t fault; /* that is armed; 0: none */
        long noted;     /* how much of the request log was looked at */
};

/* All that return an int: 0 or more, or a negative errno; -ECANCELED: the attempt has its result already. */

void life_step(struct life *life, const char *format, ...) _printf_(2, 3); /* notes what happens */
int life_fail(struct life *life, const char *format, ...) _printf_(2, 3);  /* -ECANCELED */
int life_check(struct life *life, int r); /* of the rig: if it is an error, the attempt has failed with it */
/* Asks the server; takes the body. Returns the HTTP status. */
int life_ask(struct life *life, const char *method, const char *path, cJSON *body, cJSON **ret);

/* The objects of the watch. The first of these must be called once before the others. */
int life_find_resource(struct life *life);
int life_create(struct life *life);
int life_delete(struct life *life);
/* The spec of the first object. value: {words, spec}; NULL: as it was. *ret_accepted: false: the server refuses it. */
int life_set_spec(struct life *life, const cJSON *value, bool *ret_accepted);
char *life_key(const struct torture *torture,
               const cJSON *subject); /* owned by the caller; NULL: no memory */
