/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The bodies that this worker has applied, and the state of the dependents after that: applying the same
 * body to a dependent that has not changed since would change nothing. There are some numbers for each, in
 * a table of a fixed size: a new entry replaces an older one, and what is forgotten is only applied again.
 *
 * Where others set a dependent back each time, the same body changes it again and again. That is counted, and the body is
 * held: for four seconds after the third time, then for twice as long each time, up to ten minutes. Ten quiet minutes end it.
 * Times are microseconds of CLOCK_BOOTTIME.
 */
#include <stdint.h>

#include "worker/dependents/dependent.h"

#define APPLIED_MAX 65536 /* a power of two; 2.5 MiB, of which unused pages take no memory */

struct applied;

struct applied_text {
        uint64_t dependent; /* hash of the owner's UID and of its name; never 0 */
        uint64_t text;      /* hash of the body */
};

int applied_new(struct applied **ret);
void applied_free(struct applied *applied);
DEFINE_CLEANUP(struct applied *, applied_free);

struct applied_text applied_text_of(const struct dependent_owner *owner, const struct dependent *dependent,
                                    const struct text *body);
/* The state of an object as the API server gives it: a hash of UID, version and content. (A database that
 * was restored from a backup uses versions again.) */
int applied_state_of(const char *json, size_t size, uint64_t *ret);
/* Applying this text brought the dependent into this state. */
void applied_keep(struct applied *applied, const struct applied_text *text, uint64_t state);
/* Whether this text was the last one, and this the state that it led to. */
bool applied_made(const struct applied *applied, const struct applied_text *text, uint64_t state);
/* Applying the same text as before has changed the dependent. */
void applied_count_repair(struct applied *applied, const struct applied_text *text, uint64_t now);
/* How often in a row others have set back what this text has set. ret_until: it is not applied before; 0: it may be. */
unsigned applied_repairs(const struct applied *applied, const struct applied_text *text, uint64_t now,
                         uint64_t *ret_until);
