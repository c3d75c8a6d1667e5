/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Runs that have failed: how their row, their entry in the queue and the log change. */
#include "controller/controller.h"

/* A run that has ended, while its outcome is worked out. */
struct ending {
        struct watch *watch;
        const struct message_done *done;
        enum change_kind kind;
        enum run_reason reason; /* of the run */
        uint64_t attempt;       /* as handlers, logs and lists show it */
        unsigned behind;        /* how often in a row it was, before */
        struct ledger_row row;
        bool remove_row, keep_row, was_retry; /* keep the value on disk */
        bool is_first;                        /* of its object */
        bool counted;                         /* this failure: it is the first of its backoff */
        bool fatal;                           /* the operator ends for it, once it is written down */
        bool refused;        /* nobody is to blame: the failure does not count as an attempt */
        bool past_deadline;  /* ... and we were refused for too long */
        bool is_from_before; /* it was given out before the last reload */
        bool has_left;       /* the selection, while it ran: nothing is owed to it */
        bool is_withdrawn;   /* a deletion: its object is there again */
        bool is_outdated;    /* another epoch of its watch has begun: its versions prove nothing */
        struct queue_outcome outcome;
};

/* How its row, its entry in the queue and the log change for each way to fail. -ENOMEM. */
int ending_failed(struct ending *ending);          /* RESULT_RETRY */
int ending_failed_for_good(struct ending *ending); /* RESULT_PERMANENT */
int ending_unavailable(struct ending *ending);     /* RESULT_UNAVAILABLE, RESULT_FORBIDDEN */
int ending_refused(struct ending *ending);         /* RESULT_UNRECOVERABLE */
int ending_stopped(struct ending *ending);         /* RESULT_STOP */
/* Failures that count: a run that could not reach the server, or was refused by it, is none. */
uint64_t ending_attempts(const struct ledger_row *row);
