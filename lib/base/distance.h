/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stddef.h>

/* How many letters must be typed otherwise (Levenshtein), for words that are nearly right; SIZE_MAX: too
 * long a word to tell. */
size_t word_distance(const char *a, const char *b);
