/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Merge patch (RFC 7386), JSON patch (RFC 6902), and the part of strategic merge patch that kubectl uses. */
#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/error.h"

/* Each works on `target` in place and returns the result, which replaces it (NULL: no memory). */
cJSON *patch_merge(cJSON *target, const cJSON *patch);
cJSON *patch_strategic(cJSON *target, const cJSON *patch);
/* 0; -EINVAL: the patch is malformed; -ECANCELED: a `test` failed or a path is missing (422). */
int patch_json(cJSON **target, const cJSON *operations, struct error *error);
