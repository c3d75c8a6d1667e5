/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * cJSON keeps numbers as doubles and prints 15 digits of them. What has more than that is kept as it was
 * written (a cJSON_Raw node): it is compared, copied and printed as text, so that 64-bit integers survive.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* NULL: not valid JSON, or no memory. */
cJSON *json_parse(const char *text, size_t size);
