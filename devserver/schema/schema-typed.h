/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Configurations of a server-side apply against the schema. */
#include <cjson/cJSON.h>

/* Gives the elements of maps the keys that are left out and have a default. */
void schema_complete_keys(cJSON *config, const cJSON *schema);
/* What stops the apply before anything else: a field that the schema does not declare, another type. schema: NULL: of a core
 * kind. The caller's; NULL: nothing, or no memory. */
char *schema_typed_mistake(const cJSON *config, const cJSON *schema);
