/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Field ownership: metadata.managedFields in the real FieldsV1 form, and server-side apply on top of it. A
 * field set is a tree of cJSON objects: "f:name" for members, "k:{...}" for elements of associative lists,
 * "v:..." for elements of sets, "." for the node itself.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>

#include "devserver/tree/list-rule.h"

/* Applies `config` as `manager` to `live` (NULL: create). Returns the new object, or NULL with the conflicts
 * in *ret_conflicts (a list of {field, manager},
 * the manager with what else names it). */
cJSON *apply_config(const cJSON *live, const cJSON *config, const char *manager, const char *api_version,
                    const char *subresource, bool force, struct place root, cJSON **ret_conflicts);

/* After a write that is no apply: what changed between the two belongs to `manager` now. */
void manage_update(const cJSON *before, cJSON *after, const char *manager, const char *api_version,
                   const char *subresource, struct place root);
