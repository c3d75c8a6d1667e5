/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Members of an answer: "", 0 and false where there is none; and times as people read them. */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

const char *ctl_text(const cJSON *object, const char *name);
uint64_t ctl_number(const cJSON *object, const char *name);
bool ctl_is(const cJSON *object, const char *name);
/* "3m12s", not finer than anybody wants to know it; since a time of the wall clock (microseconds), "-" when
 * there is none; until one. Each returns `buffer` or a constant; 64 bytes are enough. */
const char *ctl_duration(uint64_t usec, char *buffer, size_t size);
const char *ctl_since(const cJSON *object, const char *name, char *buffer, size_t size);
const char *ctl_until(const cJSON *object, const char *name, char *buffer, size_t size);
