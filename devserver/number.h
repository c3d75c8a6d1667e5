/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Numbers as the real server keeps them: what is written without fraction and exponent and fits into 64 bits
 * stays an integer, anything else becomes a double, and is written as Go writes doubles.
 */
#include "json/json.h"

/* What a client has sent. NULL: no valid JSON, a number that no double holds, or no memory. */
cJSON *number_parse(const char *text, size_t size);
/* Of a tree that was not read by number_parse(). -ERANGE, -ENOMEM. */
int number_normalize(cJSON *tree);
