/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which namespaces a watch follows: names, patterns (`team-*`, `*` any bytes, `?` one), and both with "!"
 * before them, which take out again. Only exclusions: all but those.
 */
#include "ipc/message.h"

/* A single pattern or exclusion makes the watch cluster-wide, filtered here. */
bool namespaces_are_patterns(const struct record_string *pattern, size_t count);
/* No pattern at all matches every name, and "" (what has no namespace). */
bool namespace_match(const struct record_string *pattern, size_t count, const char *name, size_t length);
