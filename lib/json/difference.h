/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What differs between two JSON values, leaf by leaf, without what the API server alone keeps of an object (managedFields,
 * resourceVersion and the like).
 */
#include <cjson/cJSON.h>
#include <stddef.h>

/* path: "spec.ports[0].name". before, after: the leaf there; one of them may be NULL. All is borrowed. */
typedef void (*difference_t)(const char *path, const cJSON *before, const cJSON *after, void *userdata);
/* Either value may be NULL: all of the other is new, or gone. Returns the number of leaves. */
size_t difference_visit(const cJSON *before, const cJSON *after, difference_t visit, void *userdata);
