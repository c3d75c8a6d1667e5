/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What an attempt that failed leaves to be undone (`onFailure: rollback`): the dependents that it made, which
 * are deleted, and those that it changed, which get back what we had applied before. The plan goes to the
 * ledger before anything is undone, so that a crash in the middle goes on where it was. Pure data.
 */
#include "worker/dependents/dependent.h"

#define PARK_PLAN_MAX (150 * 1024) /* bytes; larger than that it would fit into no message */

struct park_plan {
        char *cause;       /* why the attempt failed: what counts, whatever the undoing meets */
        uint64_t deadline; /* by the ledger's clock: how long it may take; then the attempt is over anyway */
        uint64_t
                answered; /* by the same clock: when the server last said how the dependents are; 0 = unknown
                            */
        bool silent;      /* it has refused to since, or could not be reached */
        bool slow;        /* its last answer took so long that what it says may be old */
        uint64_t fingerprint; /* of the object that the attempt was about */
        uint64_t essence; /* likewise, whatever the watch's trigger is: our own writes do not change it */
        struct dependent_list wait; /* are to become ready first; then there is no cause yet */
        uint64_t related;           /* fingerprint of what the answer was made from beside the object */
        char *message;              /* of the answer, and its requeueAfter: for when they are */
        uint64_t requeue_after_usec;
        char *ready;     /* what the answer says of the condition Ready, as JSON; "" = nothing */
        uint64_t result; /* enum run_result of the attempt; 0: RESULT_RETRY */
        bool again;      /* `wait` is for their kinds to be served; then the same attempt begins anew */
        struct dependent_list undo; /* with `previous`: is restored, without: is deleted */
};

/* -E2BIG: what to restore is left out, and `out` holds the rest. */
int park_plan_write(const struct park_plan *plan, struct text *out);
int park_plan_read(const char *text, struct park_plan *ret); /* -EBADMSG, -ENOMEM */
void park_plan_done(struct park_plan *plan);

/* What `manager` has applied of an object, as a body that applies it again: its managedFields say which.
 * Owned by the caller; NULL: no memory, or the object cannot be read. */
char *managed_fields_body(const char *object, const char *manager);
