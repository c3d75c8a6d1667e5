/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Other values for an object's spec, one change at a time: bounds, absent, empty, the other words of an enumeration. */
#include <cjson/cJSON.h>
#include <stdbool.h>

/* spec: as it is; may be NULL. schema: of its definition (openAPIV3Schema); NULL: types are those of the values. name: of the
 * spec, for the words. hidden: the words do not show values, and texts are base64, as in a Secret. A list of {words, spec}, owned by the caller; NULL: no memory. A server may refuse some of them. */
cJSON *spec_values(const cJSON *spec, const cJSON *schema, const char *name, bool hidden);
