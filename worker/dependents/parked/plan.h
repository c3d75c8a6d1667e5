/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The plan of a parked attempt: what is to be undone (`onFailure: rollback`), or which dependents are to
 * become ready (`children: {wait: ...}`). It is in the ledger before anything of it is done, so that a crash
 * in the middle goes on where it was. Pure data.
 *
 * Times are microseconds of the ledger's clock (park.h).
 */
#include "worker/dependents/dependent.h"

#define PARK_PLAN_MAX (150 * 1024) /* bytes; a larger one would fit into no message */

struct park_plan {
        char *cause;          /* why the attempt failed: the run's result, whatever a rollback meets; "" */
        uint64_t deadline;    /* then the attempt is over anyway */
        uint64_t answered;    /* when the server last said how the dependents are; 0: unknown */
        bool silent;          /* since then it has refused to, or could not be reached */
        bool slow;            /* its last answer took so long that it may be stale */
        uint64_t fingerprint; /* of the object that the attempt was about */
        uint64_t essence;     /* likewise, whatever the trigger: our own writes do not change it */
        uint64_t related;     /* fingerprint of the related objects that the answer was made from */
        struct dependent_list wait; /* to become ready; until then there is no cause */
        bool again;    /* `wait` is for their kinds to be served: then the attempt begins again */
        char *message; /* the answer's, and when it wants to run again: for when all are ready */
        uint64_t requeue_after_usec;
        uint64_t requeue_at_usec;   /* of CLOCK_REALTIME */
        char *ready;                /* what the answer says of the condition Ready, as JSON; "": nothing */
        char *given;                /* as of given_keep(); "" */
        uint64_t result;            /* enum run_result of the attempt; 0: RESULT_RETRY */
        struct dependent_list drop; /* that the answer leaves out: deleted when all in `wait` are ready */
        struct dependent_list undo; /* with `previous`: to be restored; without: to be deleted */
};

/* -E2BIG: what is to be restored, or dropped later, is left out, and `out` holds the rest. What is not dropped now stays in
 * the object's list, so the next run deletes it. */
int park_plan_write(const struct park_plan *plan, struct text *out);
int park_plan_read(const char *text, struct park_plan *ret); /* 0, -EBADMSG, -ENOMEM */
void park_plan_done(struct park_plan *plan);
