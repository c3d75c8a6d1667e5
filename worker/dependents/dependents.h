/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The objects that an answer wants beside its own (`children`), while a run works on them: what all its phases share. A
 * phase goes through one list, one request at a time (dependents_each()). What it calls for each returns
 *
 *   0           it is the next one's turn
 *   -EAGAIN     this one is looked at again
 *   -EHOSTDOWN  the next one would fare no better: the failures that were counted are the result
 *   another negative: the run has ended, or cannot go on
 */
#include "object/bookkeeping.h"
#include "store/record.h"
#include "worker/dependents/applied.h"
#include "worker/dependents/dependent.h"
#include "worker/dependents/parked/plan.h"
#include "worker/run-state.h"

enum dependents_verb {
        DEPENDENTS_GET,
        DEPENDENTS_APPLIES,
        DEPENDENTS_CREATES,
        DEPENDENTS_MERGES,
        DEPENDENTS_DELETES
};

struct dependents {
        struct run *run;
        char *manager; /* of `patches`: their field manager; NULL: these are children */
        struct dependent_owner owner;

        struct dependent_list wanted; /* by the answer */
        struct dependent_list known;  /* by the object's annotation; or by the plan of a parked attempt */
        struct dependent_list kept;   /* by the lists of other operators: not ours to delete */
        struct dependent_list beside; /* by the lists of our other watches: each has what it applied last */
        struct dependent_list lost;   /* kinds and namespaces in which recall.c looks for dependents */

        bool present; /* the handler has not run yet: they are only looked at */
        bool cleanup; /* the object goes, and all of them with it */
        bool undo;    /* a parked attempt: `known` is what its plan says */
        bool wait;    /* ... and are to become ready; nothing is undone */
        bool drop;    /* ... and are ready: `known` is what goes now */

        bool looking;      /* whether they are ready: of a parked attempt */
        bool pruning;      /* deleting, or giving up, what is not wanted any more */
        char no_kind[400]; /* of dependents_resolve(): why there is none */
        bool owner_seen; /* the object is there, and not going: a reference that was taken off may come back */

        struct {
                bool done, doubted;
                size_t found; /* that the list on the object lacked */
        } recall;
        struct {
                bool orphaned; /* a child has lost its owner reference: those that can have none are orphans too */
                bool elsewhere; /* those that can refer to the object were all judged; now come the others */
                size_t left;    /* deleted, and still there */
        } prune;
        struct {
                unsigned count;
                unsigned refused;  /* of them: not the fault of the dependent */
                bool unauthorized; /* 401 */
                struct text text;  /* for people */
        } failed;

        struct applied_text sent; /* that is being applied */
        size_t marked;            /* how many got no more than their mark */
        const struct dependent *first_marked;
        size_t awaited;        /* their kind is defined in the same answer, and not served yet */
        char waiting[400];     /* the first that is not ready, and why; "": none */
        struct park_plan plan; /* of a parked attempt */
        struct {
                bool silent;    /* the server could not take a request about a dependent */
                uint64_t asked; /* ledger's clock: since when it is being asked; 0: all was in the stores */
                uint64_t slow_usec; /* time of its slow answers; 0 if none was slow */
        } server;
};

/* The run's object as their owner. 0, or a negative errno. */
int dependents_init(struct dependents *dependents, struct run *run);
void dependents_free(struct dependents *dependents); /* NULL is allowed */
DEFINE_CLEANUP(struct dependents *, dependents_free);

/* Goes through the list; backwards: the last one that was made goes first. 0, or the first negative value but -EAGAIN. */
_warn_unused_ int dependents_each(struct dependents *dependents, const struct dependent_list *list,
                                  bool backwards,
                                  int (*one)(struct dependents *dependents,
                                             struct dependent *dependent)) _suspends_;
/* 0; negative: the operator stops, and the run has ended. */
_warn_unused_ int dependents_may_go_on(struct dependents *dependents);
/* Text for people: the first of the run's dependents that is waited for, and why; borrowed. NULL if none
 * is. */
const char *dependents_waiting(const struct run *run);
/* Notes that this one is not ready, and why. */
void dependents_note_unready(struct dependents *dependents, const struct dependent *dependent,
                             const char *why);
/* Notes that the server was asked for this dependent without an answer. */
void dependents_note_refused(struct dependents *dependents, const struct dependent *dependent,
                             const struct kube_error *error);

/* Counts a failure and keeps it for people: "ConfigMap default/a WHAT: WHY". dependent: NULL where it
 * concerns none in particular. */
void dependents_fail(struct dependents *dependents, struct dependent *dependent, const char *what,
                     const char *why);
/* Counts a refusal of the server as a failure of the dependent. 0, -EHOSTDOWN. */
_warn_unused_ int dependents_take_refusal(struct dependents *dependents, struct dependent *dependent,
                                          const char *what, const struct kube_error *error,
                                          const struct kube_response *response);
/* Does the same for an answer about the dependent itself; but after a 404 its kind is looked up once more
 * (-EAGAIN). */
_warn_unused_ int dependents_take_failure(struct dependents *dependents, struct dependent *dependent,
                                          const char *what, const struct kube_response *response);
/* Whether the next one would fare no better. */
bool dependents_is_about_server(const struct dependents *dependents, const struct kube_error *error);
/* The result of a run whose dependents have failed. */
enum run_result dependents_result(const struct dependents *dependents);
/* While pruning, nothing else of this kind is tried. */
void dependents_leave_kind(struct dependents *dependents, const struct dependent *dependent);
/* Whether the server is believed when it says that a kind is not served: not at once. */
bool dependents_is_believed(const struct dependents *dependents);

/* 1: the dependent's resource is known; -ENXIO: the server has no such kind, as dependents->no_kind says; else as for
 * dependents_each(). */
_warn_unused_ int dependents_resolve(struct dependents *dependents, struct dependent *dependent) _suspends_;
/* Sends a request about the dependent. body: NULL if there is none. 0: *ret is the answer, whatever it says;
 * negative: it cannot be sent, or the run has ended. */
_warn_unused_ int dependents_ask(struct dependents *dependents, const struct dependent *dependent,
                                 enum dependents_verb verb, const struct text *body,
                                 struct kube_answer *ret) _suspends_;
/* Asks for it. 1: *ret is the object, or it is not found; a refusal is its failure, as for dependents_each(). */
_warn_unused_ int dependents_look(struct dependents *dependents, struct dependent *dependent,
                                  struct kube_answer *ret) _suspends_;
/* Logs what was done to a child, one record for each write, so that the log alone has a child's history; DONE
 * and Events have it as well. fields: the names of those that were changed; or "". */
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
