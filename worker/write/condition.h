/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Conditions, as metav1.Condition has them: a list with `type` as its key. lastTransitionTime moves only
 * when `status` does; a condition that does not differ is left as it is. Pure data: no request is made here.
 */
#include <cjson/cJSON.h>

#include "base/error.h"

struct condition {
        const char *type;
        const char *status;  /* "True", "False", "Unknown" */
        const char *reason;  /* NULL: one is made up from the status, because the API demands one */
        const char *message; /* NULL: "" */
};

/* The answer's `conditions`: 0, or -EINVAL with the place of what is wrong. */
int conditions_check(const cJSON *list, struct error *error);
/* An entry of a list that was checked. The strings are borrowed. */
struct condition condition_read(const cJSON *item);

/* The entry of this type, borrowed; NULL if there is none. */
const cJSON *conditions_find(const cJSON *list, const char *type);
/* The object's status.conditions, owned by the caller; an empty list if there are none. 0; -EBADMSG: they cannot be read;
 * -E2BIG: there are too many values in them (JSON_BOUNDED_MAX); -ENOMEM. */
int conditions_of(const char *json, cJSON **ret);
/* Adds it, or changes the entry of its type. generation: metadata.generation that was seen; 0 if there is none. now:
 * RFC 3339. 0, -ENOMEM. */
int condition_set(cJSON *list, const struct condition *condition, int64_t generation, const char *now);
