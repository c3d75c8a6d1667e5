/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Warnings of the API server (RFC 7234, 5.5), each once. Bounded: the oldest are forgotten. Private to
 * kube/. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WARNINGS_MAX     64
#define WARNING_TEXT_MAX 512

struct warnings {
        uint64_t seen[WARNINGS_MAX];
        size_t count; /* warnings that were new when they came */
};

/* Whether it is new. */
bool warnings_note(struct warnings *warnings, const char *text);

/* The text of a whole header line (`Warning: 299 - "text"`), as one line of UTF-8, cut to
 * WARNING_TEXT_MAX - 1 bytes. false: it is no such line. */
bool warning_read(const char *line, size_t size, char ret[static WARNING_TEXT_MAX]);
