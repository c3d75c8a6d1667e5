/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The promises, and nothing of the code: what handlers were shown, by UID, against what the server had.
 *   1 no change is lost: at rest the last content that the handler of a watch was shown of an object that the
 *     watch selects is what the server has, also if it went back to an older one meanwhile, and the handler
 *     has succeeded with it, unless it was given up;
 *   2 an end is told: of each object that a handler has seen (deleted, finalize), unless somebody else took
 *     our finalizer away, or the database went back;
 *   3 never two runs of one object at once, in whichever watch;
 *   4 no end is told of an object that lives;
 *   5 attempts of one failing content are at least the backoff apart, unless other content came between;
 *   6 it comes to rest, in bounded time; what is at rest runs no more, whatever becomes of the process;
 *   7 what may run is overtaken by a bounded number of runs, whatever else there is to be done; a tenant that
 *     has nothing else waiting, by about as many as there are tenants (crowd.c);
 *   8 no handler is shown an object that is older than what a run of its watch has written to it;
 *   9 the handler of a watch with a rate is not asked more often, and nothing waits for longer than that (crowd.c).
 */
#include <stdbool.h>
#include <stdint.h>

struct simulation;

#define MODEL_UIDS    8192
#define MODEL_WATCHES 2

/* What one watch's handler has seen of one object. */
struct model_seen {
        bool seen, ended;       /* ended: the end was told, successfully */
        bool released;          /* somebody else took our finalizer, or the watch has left it */
        bool moves;             /* it has left for another watch, which has not been shown it yet */
        uint64_t ended_life;    /* how often the operator had ended by then */
        bool has_failed;        /* by a handler's own failure, and nobody has asked for a run since */
        bool is_heard, is_kept; /* the controller has heard of that failure, and has written it down */
        bool is_done;           /* the handler was shown that content, and has succeeded */
        bool is_given_up;       /* or has failed for good, or as often as it may */
        bool is_renewed;        /* it was given up, and gets one more attempt when the ledger has that */
        bool is_from_before;    /* its run was given to a worker before the last reload */
        unsigned failures;      /* its own, since the last success */
        bool is_given;          /* to a worker; what is heard meanwhile may be older than what that reads */
        bool has_news;          /* other content was heard since its last run was given */
        bool is_for_news;       /* and before that, since the run before */
        bool at_rest;           /* nothing has happened to it since the last rest: it has no reason to run */
        uint64_t content;       /* last shown, by its fingerprint; 0: it was shown an end */
        uint64_t attempted;     /* in the last run of the object, its end included */
        uint64_t failed_content; /* of the last failed attempt */
        uint64_t failed_time;    /* CLOCK_BOOTTIME */
        uint64_t written;        /* resourceVersion of the last write of a run, until a restore; 0 */
        uint64_t again_time;     /* likewise: its handler has asked to be run again then; 0: it has not */
        bool is_known;           /* the controller has heard that it lives again */
        bool is_unsure;          /* the machine went down: it may run once more */
        bool may_hold; /* nobody may know any more that it has our finalizer, and is not selected */
};

struct model {
        struct model_seen seen[MODEL_WATCHES][MODEL_UIDS];
        struct {
                bool running;
                unsigned watch, uid, worker;
        } running[8];                       /* by name */
        uint64_t touched[MODEL_UIDS];       /* by users */
        unsigned last_selected[MODEL_UIDS]; /* by these watches, when it went */
        bool revived[MODEL_WATCHES]
                    [MODEL_UIDS]; /* by a restore: its end may still be told, by a run that is on its way */
        uint64_t runs, failures;
        uint64_t stamp, kept_stamp; /* of the handlers that the controller knows, and the ledger */
        char broken[512];           /* the first promise that did not hold; "" */
};

enum model_kind { MODEL_RECONCILE, MODEL_FINALIZE, MODEL_DELETED, MODEL_UNSELECTED };

void model_broken(struct simulation *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void model_run_begins(struct simulation *sim, unsigned worker, unsigned watch, unsigned name, unsigned uid);
void model_run_ends(struct simulation *sim, unsigned name);
/* A handler is shown the object. version: 0 if nothing but its identity is known. */
void model_shown(struct simulation *sim, unsigned watch, unsigned name, unsigned uid, enum model_kind kind,
                 uint64_t content, uint64_t version);
void model_wrote(struct simulation *sim, unsigned watch, unsigned uid,
                 uint64_t version); /* a run, and it knows that */
/* own: the handler itself has failed. refused: what it answered. permanent: for good. */
void model_answered(struct simulation *sim, unsigned watch, unsigned uid, enum model_kind kind, bool success,
                    bool own, bool refused, bool permanent);
/* ... and is to be run again. 0: by its own wish not. */
void model_requeued(struct simulation *sim, unsigned watch, unsigned uid, uint64_t usec);
void model_touched(struct simulation *sim, unsigned uid); /* by a user */
/* Its run is given to a worker. */
void model_given(struct simulation *sim, unsigned watch, unsigned uid);
void model_returned(struct simulation *sim, unsigned watch, unsigned uid); /* and nothing was shown */
/* The controller is told of it. */
void model_heard(struct simulation *sim, unsigned watch, unsigned uid, uint64_t content, bool restored);
void model_unsettle(struct simulation *sim); /* each object may run once more */
void model_gone(struct simulation *sim, unsigned uid, unsigned selected);
/* Its watch has left it, which `selected` have now. It owes it no end any more, unless those have yet to see it. */
void model_left(struct simulation *sim, unsigned watch, unsigned uid, unsigned selected);
void model_released(struct simulation *sim, unsigned watch, unsigned uid);
/* What is lost cannot be known: the ends of what it has seen so far need not be told. */
void model_lost(struct simulation *sim, unsigned watch);
/* An attempt that failed: something else asks for a run. */
void model_forgives(struct simulation *sim, unsigned watch, unsigned uid);
void model_forgives_all(struct simulation *sim);
/* By a reload, or with another handler: what was given up gets one more attempt. */
void model_renewed(struct simulation *sim);
/* The ledger is gone: who has left, and not been told yet, is known to nobody. */
void model_ledger_lost(struct simulation *sim, unsigned watch);
void model_ended(struct simulation *sim, unsigned watch, unsigned uid); /* the controller has heard that */
void model_committed(struct simulation *sim); /* and whatever it has heard, it has kept */
void model_vanished(struct simulation *sim, unsigned watch, unsigned uid); /* as a warning says */
/* What people see of the ledger, at rest. */
struct model_row {
        unsigned name, uid;
        bool is_end, fails, is_due;
};
void model_row(struct simulation *sim, unsigned watch, const struct model_row *row);
void model_revived(struct simulation *sim, unsigned watch, unsigned uid); /* by a restore */
void model_power_lost(struct simulation *sim);
void model_killed(struct simulation *sim); /* nothing runs any more */
void model_at_rest(struct simulation *sim);
