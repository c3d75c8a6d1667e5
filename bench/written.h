/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What clients wrote of an object and expect to see again: annotations (where some keep what they have
 * handled) and status. The rest of a write is ignored.
 */
#include <stddef.h>

struct written {
        char *annotations, *status; /* JSON objects; NULL: none */
};

/* Merges a merge patch, an applied or a whole object into it; what is no JSON is ignored. */
void written_merge(struct written *written, const char *body, size_t size);

/* Bytes that it adds to an object, at most. */
size_t written_size(const struct written *written);
