/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Manifests as YAML. */
#include <cjson/cJSON.h>

#include "base/text.h"

#define MANIFEST_COMMENT "#" /* a member with a text that stands above its object, which is in a list */

/* A document of its own, with the line "---" above it. Scalars, objects, lists of strings and lists of
 * objects. */
void manifest_write(struct text *out, const cJSON *manifest);
void manifest_strip_comments(cJSON *value);
