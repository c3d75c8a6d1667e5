/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The objects that an answer wants beside its own (`children`), while a run works on them: what all phases
 * share. A phase goes through one list, one request at a time; when its part is over it calls
 * dependents_advance(). Which phase follows, and how a run with failures ends, is decided by phases.c, which
 * the others reach through struct dependents_driver alone.
 */
#include "kube/client.h"
#include "kube/search.h"
#include "object/bookkeeping.h"
#include "store/record.h"
#include "worker/dependents/applied.h"
#include "worker/dependents/dependent.h"
#include "worker/dependents/parked/plan.h"
#include "worker/run/run.h"

enum dependents_phase {
        DEPENDENTS_PRESENT,  /* before the handler: what the request has to show */
        DEPENDENTS_RECALL,   /* look for those that the object's annotation does not name any more */
        DEPENDENTS_RESOLVE,  /* look up the kinds of those that are wanted */
        DEPENDENTS_REMEMBER, /* write down what is going to be made */
        DEPENDENTS_APPLY,
        DEPENDENTS_LOOK,    /* whether they are ready: of a parked attempt */
        DEPENDENTS_RESTORE, /* of a rollback */
        DEPENDENTS_PRUNE,   /* delete what is not wanted any more */
        DEPENDENTS_FORGET,  /* take what is gone from what is written down */
        DEPENDENTS_PHASE_COUNT
};

enum dependents_verb {
        DEPENDENTS_GET,
        DEPENDENTS_APPLIES,
        DEPENDENTS_CREATES,
        DEPENDENTS_MERGES,
        DEPENDENTS_DELETES
};

struct dependents_driver {
        /* Goes on with the current one of the phase, or with the next phase; or ends the step or the run. */
        void (*advance)(struct dependents *dependents);
        /* Ends the run with the failures that were counted. */
        void (*finish_failed)(struct dependents *dependents);
        /* The kind of the current one could not be looked up; goes on, or ends the run. */
        void (*no_kind)(struct dependents *dependents, const struct kube_error *error,
                        const struct kube_response *response);
};

struct dependents {
        struct run *run;
        const struct dependents_driver *driver;
        char *manager; /* of `patches`: their field manager; NULL: these are children */
        struct dependent_owner owner;

        struct dependent_list wanted; /* by the answer */
        struct dependent_list known;  /* by the object's annotation; or by the plan of a parked attempt */
        struct dependent_list kept;   /* by the lists of other operators: not ours to delete */
        struct dependent_list beside; /* by the lists of our other watches: each has what it applied last */
        struct dependent_list
                lost; /* kinds and namespaces where dependents are to be looked for: recall.c */

        bool present; /* the handler has not run yet: they are only looked at */
        bool cleanup; /* the object goes, and all of them with it */
        bool undo;    /* a parked attempt: `known` is what its plan says */
        bool wait;    /* ... and are to become ready; nothing is undone */
        bool drop;    /* ... and are ready: `known` is what goes now */

        enum dependents_phase phase;
        size_t position; /* in the list of the phase */
        struct {
                void (*on_done)(struct kube_transfer *, const struct kube_response *, void *);
                const struct dependent *dependent;
                enum dependents_verb verb;
                bool was_unknown; /* run->versions.unknown, before it was sent */
        } request;                /* a write that is in flight */
        bool remembered;          /* the annotation was written in this phase */
        bool owner_seen; /* the object is there, and not going: a reference that was taken off may come back */

        struct {
                bool done, doubted;
                char *next_page; /* continue token; NULL: the first page */
                size_t found;    /* that the list on the object lacked */
        } recall;
        struct {
                bool begun;
                bool orphaned; /* a child has lost its owner reference: those that can have none are orphans too */
                bool elsewhere; /* those that can refer to the object were all judged; now come the others */
                struct kube_search *search; /* of a kind; NULL: none is in flight */
                size_t left;                /* deleted, and still there */
        } prune;
        struct {
                unsigned count;
                unsigned refused;  /* of them: not the fault of the dependent */
                bool unauthorized; /* 401 */
                struct text text;  /* for people */
        } failed;

        struct applied_text sent;    /* that is being applied */
        size_t marked, first_marked; /* how many got no more than their mark; the first one's index */
        size_t awaited;              /* their kind is defined in the same answer, and not served yet */
        char waiting[400];           /* the first that is not ready, and why; "": none */
        struct park_plan plan;       /* of a parked attempt */
        struct {
                bool silent;    /* the server could not take a request about one of them */
                uint64_t asked; /* ledger's clock: since when it is being asked; 0: all was in the stores */
                uint64_t slow_usec; /* that its slow answers took; 0: none was slow */
        } server;
};

/* The run's object as their owner. 0, or a negative errno. */
int dependents_init(struct dependents *dependents, struct run *run, const struct dependents_driver *driver);
void dependents_free(struct dependents *dependents); /* NULL is allowed */
void dependents_advance(struct dependents *dependents);
void dependents_finish_failed(struct dependents *dependents);

/* The one whose turn it is, in the list of the phase; NULL: the phase is through. */
struct dependent *dependents_current(struct dependents *dependents);
/* Text for people: the first of the run's dependents that is waited for, and why; borrowed. NULL: none
 * is. */
const char *dependents_waiting(const struct run *run);
/* Notes that this one is not ready, and why. */
void dependents_note_unready(struct dependents *dependents, const struct dependent *dependent,
                             const char *why);
/* Notes that the server was asked for this one, and did not say how it is. */
void dependents_note_refused(struct dependents *dependents, const struct dependent *dependent,
                             const struct kube_error *error);

/* Counts a failure and keeps it for people: "ConfigMap default/a WHAT: WHY". dependent: NULL where it
 * concerns none in particular. */
void dependents_fail(struct dependents *dependents, struct dependent *dependent, const char *what,
                     const char *why);
/* Counts a refusal of the server as a failure of the current one, and goes to the next. false: the run
 * was ended. */
bool dependents_take_refusal(struct dependents *dependents, const char *what, const struct kube_error *error,
                             const struct kube_response *response);
/* Does the same for an answer about the current one itself; but after a 404 its kind is looked up once
 * more. */
bool dependents_take_failure(struct dependents *dependents, const char *what,
                             const struct kube_response *response);
/* Whether the next one would fare no better. */
bool dependents_is_about_server(const struct dependents *dependents, const struct kube_error *error);
/* The result of a run whose dependents have failed. */
enum run_result dependents_result(const struct dependents *dependents);
/* While pruning, nothing else of this kind is tried. */
void dependents_leave_kind(struct dependents *dependents, const struct dependent *dependent);
/* Whether the server is believed when it says that a kind is not served: not at once. */
bool dependents_is_believed(const struct dependents *dependents);

/* 0: the dependent's resource is known; 1: its kind is being looked up, or the run was ended; negative: it
 * cannot be. */
int dependents_resolve(struct dependents *dependents, struct dependent *dependent);
/* Sends a request about it; on_done gets `dependents`. body: NULL if there is none. 1, or why it cannot be started. */
int dependents_request(struct dependents *dependents, const struct dependent *dependent,
                       enum dependents_verb verb, const struct text *body,
                       void (*on_done)(struct kube_transfer *, const struct kube_response *, void *));
/* Logs what was done to a child, one record for each write, so that the log alone tells a child's story; DONE
 * and Events tell it as well. fields: the names of those that were changed; or "". */
void dependents_tell(const struct dependents *dependents, const struct dependent *dependent,
                     enum child_write what, const char *fields);
/* Names the fields in which two objects differ; of_after: only those that the second one has. false: in none. */
bool dependents_name_fields(const char *before, struct span after, bool of_after, char *buffer, size_t size);
/* Likewise, with the names of the fields in which the answer differs from what was there before, never their values. false:
 * in none. */
bool dependents_tell_changed(const struct dependents *dependents, const struct dependent *dependent,
                             enum child_write what, const struct kube_response *response);
/* Notes that it is not the object's any more, so that no request shows it as a child; dependent->version: before that. */
void dependents_note_released(struct dependents *dependents, const struct dependent *dependent);
/* Whether the error says that this server creates no object of the kind by an apply of a version (Services before 1.23). */
bool dependents_needs_post(const struct kube_error *error);
/* Whether the error says that others have set fields of the object. */
bool dependents_is_claimed(const struct kube_error *error);
/* The watch of an owned kind that shows such an object to the handler, as a child; NULL if there is none. */
const struct record_watch *dependents_find_owned(const struct dependents *dependents,
                                                 const struct dependent *dependent);
/* How the store of the owned kind shows it. 1: `ret` is the caller's; 0: it is not there, or only its metadata is. */
int dependents_in_store(const struct dependents *dependents, const struct dependent *dependent,
                        const struct record_watch *owned, struct store_object *ret);
