/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Members of the documents for reconciledctl. Each is written with a comma behind it; the last one is taken
 * back by json_close(). */
#include "base/text.h"

void json_string(struct text *json, const char *name, const char *value); /* NULL: "" */
void json_uint64(struct text *json, const char *name, uint64_t value);
void json_bool(struct text *json, const char *name, bool value);
/* bracket: "}" or "]," and the like. */
void json_close(struct text *json, const char *bracket);
