/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What differs between two JSON values, one line a leaf: "- path: old", "+ path: new". */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* Without what the API server alone keeps of an object (managedFields, resourceVersion and the like). Either
 * may be NULL: all of the other is new, or gone. Returns how many leaves were written to stdout. */
size_t difference_print(const cJSON *before, const cJSON *after, const char *indent);
