/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a run leaves on the server, without what the server sets and without the operator's own notes. Two runs of the same are
 * compared leaf by leaf; what differs between runs without faults (times, random names) is masked.
 */
#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/text.h"

/* Members are sets: objects whose members' names count. */
struct mask {
        cJSON *path; /* "ConfigMap default/a: data.now"; true: it is there each time; false: or it is not */
        cJSON *kind; /* their objects have other names each time: they are counted */
        cJSON *hidden; /* kinds whose values are not shown, as the watch wants it; "Secret" is one */
};

int mask_init(struct mask *mask); /* 0 or -ENOMEM */
void mask_done(struct mask *mask);

/* objects: a list of {path, object}. operator_name: whose labels and annotations are left out. By kind, namespace and name,
 * owned by the caller; NULL: no memory. */
cJSON *end_state_take(const cJSON *objects, const char *operator_name);
/* Masks what differs between two runs that should be the same. */
void mask_learn(struct mask *mask, const cJSON *first, const cJSON *second);
/* Appends a line for each difference that is not masked, and returns their number. */
size_t end_state_compare(const struct mask *mask, const cJSON *expected, const cJSON *is, struct text *out);
