/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What must hold between the elements of a list, and in objects inside of others. */
#include <cjson/cJSON.h>

#include "devserver/schema/schema-mistakes.h"

/* Objects inside of the object that need a kind. */
void schema_check_embedded(const cJSON *object, const cJSON *schema, struct mistakes *mistakes);
/* Elements that are twice in a list that is a set or map. Where one was in the object before, all are left. */
void schema_check_lists(const cJSON *object, const cJSON *before, const cJSON *schema,
                        struct mistakes *mistakes);
