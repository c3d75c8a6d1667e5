/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Numbers as the real server keeps them: what is written without fraction and exponent and fits into 64 bits
 * stays an integer, anything else becomes a double, and is written as Go writes doubles.
 */
#include "json/json.h"

/* Parses JSON that a client has sent. NULL: not valid, a number that no double holds, or no memory. */
cJSON *number_parse(const char *text, size_t size);
/* The same for a tree that number_parse() did not read. -ERANGE, -ENOMEM. */
int number_normalize(cJSON *tree);
