/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The kinds of cases: what may happen to an object, its handler and its operator. */
#include <stdbool.h>

#include "ctl/torture/trial.h"

/* An object's life; each phase ends when all is quiet. */
enum phase { PHASE_CREATE, PHASE_DELETE, PHASE_COUNT };

enum scope { SCOPE_ONCE, SCOPE_WRITE, SCOPE_VALUE };

enum {
        KIND_REPEATED,
        KIND_LEFT,
        KIND_RESTARTED,
        KIND_RELISTED,
        KIND_REUSED,
        KIND_REVERTED,
        KIND_FORGOTTEN,
        KIND_STALE,
        KIND_HANDLER_KILLED,
        KIND_KILLED_BEFORE,
        KIND_KILLED_AFTER,
        KIND_ANSWER_LOST,
        KIND_CONFLICT,
        KIND_THROTTLED,
        KIND_FAILED,
        KIND_DELETED,
        KIND_VALUE,
        KIND_MISSED,
        KIND_COUNT
};

struct case_kind {
        const char *name, *what;
        enum scope scope;
        /* of SCOPE_WRITE: members of a fault of the devserver, and what happens as soon as it has hit */
        const char *fault;
        enum { MEET_NOTHING, MEET_KILL, MEET_DELETE } meet;
        bool (*applies)(const struct trial *trial); /* NULL: always */
};

extern const struct case_kind case_kind[KIND_COUNT];
