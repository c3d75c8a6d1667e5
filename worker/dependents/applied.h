/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What this worker has applied of dependents, and what they became by that: to apply the same once more to one
 * that nobody else has touched would change nothing. Three numbers each, in a table of a fixed size: a new
 * entry takes the place of an old one, and what is forgotten is merely applied again.
 */
#include <stdint.h>

#include "worker/dependents/dependent.h"

#define APPLIED_MAX 65536 /* a power of two; 1.5 MiB, of which what is not used takes no memory */

struct applied;

struct applied_text {
        uint64_t dependent; /* whose, and which one */
        uint64_t text;
};

int applied_new(struct applied **ret);
void applied_free(struct applied *applied);
DEFINE_CLEANUP(struct applied *, applied_free);

struct applied_text applied_text_of(const struct dependent_owner *owner, const struct dependent *dependent,
                                    const struct text *body);
/* Of an object as the API server gives it: its UID, its version and, as a database that was restored from a
 * backup gives versions anew, what it says. */
int applied_state_of(const char *json, size_t size, uint64_t *ret);
/* By this text the dependent came to be in this state. */
void applied_keep(struct applied *applied, const struct applied_text *text, uint64_t state);
/* Whether this text was the last one, and made it so. */
bool applied_made(const struct applied *applied, const struct applied_text *text, uint64_t state);
