/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which objects depend on which owners, so that a deletion need not look at every object. */
#include <stddef.h>

#include "devserver/storage/version.h"

struct owner_index {
        struct owner_reference **bucket;
        size_t size, count;
};

/* Enters all references of a version, and takes them out again. 0 or -ENOMEM; then some may be entered. */
int owner_index_add(struct owner_index *index, struct resource *resource, struct version *version);
void owner_index_remove(struct owner_index *index, struct version *version);
/* The first or the next dependent of that owner; NULL when there is none. Valid until the next change. */
const struct owner_reference *owner_index_find(const struct owner_index *index, const char *uid,
                                               const struct owner_reference *after);
void owner_index_done(struct owner_index *index);
