/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Types, bounds, and what else a schema says of values, but for rules in CEL (x-kubernetes-validations). */
#include <cjson/cJSON.h>

#include "devserver/schema/schema-mistakes.h"

/* before: the value that it replaces, or NULL; what has not changed since is not wrong. prefix: the way to the value, or
 * NULL: it is the whole object. */
void schema_validate(const cJSON *value, const cJSON *before, const cJSON *schema, const char *prefix,
                     struct mistakes *mistakes);
