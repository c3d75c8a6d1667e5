/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The kinds of cases: what may happen to an object, its handler and its operator. */
#include <stdbool.h>
#include <stddef.h>

#include "ctl/torture/trial.h"

/* An object's life; each phase ends when all is quiet. */
enum phase { PHASE_CREATE, PHASE_DELETE, PHASE_COUNT };

enum scope { SCOPE_ONCE, SCOPE_WRITE, SCOPE_VALUE };

struct case_kind {
        const char *name, *what;
        enum scope scope;
        /* of SCOPE_WRITE: members of a fault of the devserver, and what happens as soon as it has hit */
        const char *fault;
        enum { MEET_NOTHING, MEET_KILL, MEET_DELETE } meet;
        bool (*applies)(const struct trial *trial); /* NULL: always */
};

extern const struct case_kind case_kind[];
extern const size_t case_kind_count;
