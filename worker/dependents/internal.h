/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What children.c and children-undo.c share: the machine that goes through an object's children. */
#include "kube/search.h"
#include "object/bookkeeping.h"
#include "worker/dependents/applied.h"
#include "worker/dependents/dependent.h"
#include "worker/dependents/dependents.h"
#include "worker/dependents/parked/plan.h"

enum dependents_phase {
        DEPENDENTS_RECALL,
        DEPENDENTS_RESOLVE,
        DEPENDENTS_REMEMBER,
        DEPENDENTS_APPLY,
        DEPENDENTS_LOOK,
        DEPENDENTS_RESTORE,
        DEPENDENTS_PRUNE,
        DEPENDENTS_FORGET,
        DEPENDENTS_PHASE_COUNT
};

struct dependents {
        struct run *run;
        struct dependent_owner owner;
        struct dependent_list wanted, known; /* by the answer; by the annotation */
        struct dependent_list kept; /* by the lists of other watches and operators: not ours to delete */
        bool takes_over; /* `known` holds dependents of a watch that does not select the object any more */
        struct dependent_list lost; /* kinds whose dependents are to be looked for: children-recall.c */
        bool recalled;              /* that was done */
        bool own_namespace;         /* ... in the object's namespace alone */
        char *next_page;
        bool cleanup;       /* the object goes: all of them go */
        bool undo;          /* `known` is what the plan says */
        bool wait;          /* ... and are to become ready: nothing is undone */
        bool silent;        /* the server could not take a request about one of them */
        uint64_t asked;     /* by children_now(): since when it is being asked; 0 = all was in the stores */
        uint64_t slow_usec; /* how long its slow answers took; 0 = none was slow */
        char waiting[400];  /* the first that is not ready, and why; "" = none */
        struct park_plan plan;
        enum dependents_phase phase;
        size_t position;          /* in the list of the phase */
        bool remembered;          /* the annotation was written in this phase */
        size_t left;              /* deleted, and still there */
        bool pruning, heir_known; /* children-prune.c */
        struct kube_search *search;
        struct applied_text sent;   /* what is being applied */
        size_t awaited;             /* their definition is in the same answer, and not served yet */
        unsigned failures, refused; /* refused: nobody's */
        bool unauthorized;
        struct text trouble;
};

/* The one whose turn it is, in the list of the phase; NULL behind the last. */
struct dependent *dependents_current(struct dependents *dependents);
/* Counts and keeps for the end that it has failed. dependent NULL: something of it. */
void dependents_fail(struct dependents *dependents, struct dependent *dependent, const char *what,
                     const char *why);
/* The same of what the server refused; false: the run was ended. */
bool dependents_take_refusal(struct dependents *dependents, const char *what, const struct kube_error *error,
                             const struct kube_response *response);
/* ... of an answer about the dependent itself, whose kind may be looked up once more before. */
bool dependents_take_failure(struct dependents *dependents, const char *what,
                             const struct kube_response *response);
/* Whether the next dependent would fare no better. */
bool dependents_is_about_server(const struct dependents *dependents, const struct kube_error *error);
/* The result of a run whose dependents have failed. */
enum run_result dependents_result(const struct dependents *dependents);
/* 0: the dependent's resource is known; 1: it is being asked for, or the run was ended. */
int dependents_resolve(struct dependents *dependents, struct dependent *dependent);
/* 1: sent. */
int dependents_request(struct dependents *dependents, const struct dependent *dependent, const char *method,
                       const struct text *body,
                       void (*on_done)(struct kube_transfer *, const struct kube_response *, void *));
/* 1: sent: an apply of this body to what was looked at, if it was; else to whatever has its name. */
int dependents_send_body(struct dependents *dependents, const struct dependent *dependent,
                         const struct text *body,
                         void (*on_done)(struct kube_transfer *, const struct kube_response *, void *));
void dependents_advance(struct dependents *dependents);
void dependents_finish_failed(struct dependents *dependents);     /* ends the run */
bool dependents_is_believed(const struct dependents *dependents); /* what is said not to be served */

/* children-recall.c */
int recall_begin(struct dependents *dependents);
int recall_next(struct dependents *dependents); /* of the phase table */

/* children-prune.c */
int prune_next(struct dependents *dependents); /* of the phase table */
/* Looks for the dependent's kind in all versions of its group. Goes on, or ends the run. */
void prune_search_kind(struct dependents *dependents, const struct dependent *dependent);
/* Nothing of this kind is tried any more in this phase. */
void dependents_leave_kind(struct dependents *dependents, const struct dependent *dependent);

/* children-record.c */
#define TOOLING     "reconciled/" RECONCILED_VERSION
#define PART_OF_KEY "applyset.k8s.io/part-of"
/* The text of an annotation or a label, owned by the caller; NULL: there is none. */
char *notes_find(const char *json, bool label, const char *key);
/* likewise: what is remembered of the object in `json` */
char *notes_find_record(const struct run *run, const char *json);
int remember_read(struct dependents *dependents);
/* What identifies it, unless the list has it already. */
int dependent_list_copy(const struct dependent *dependent, struct dependent_list *list);
/* After others have written to the object: what stands there joins what is known. */
int remember_join(struct dependents *dependents);
/* 1: sent, or the run was ended. A known dependent stays in the record until it is settled. */
int remember_send(struct dependents *dependents);
int remember_next(
        struct dependents *dependents); /* of the phase table: nothing is made that is not remembered */
int remember_forget_next(struct dependents *dependents);

/* children-applied.c */
/* Whether to apply it would change nothing; then it is taken as applied. */
bool unchanged_is_applied(struct dependents *dependents, struct dependent *dependent,
                          const struct text *body);
/* How the store shows a dependent of a kind that the watch owns. 1: `ret` is the caller's; 0: its kind is not
 * owned, or it is not there. */
int dependents_in_store(const struct dependents *dependents, const struct dependent *dependent,
                        struct store_object *ret);
void unchanged_note_applied(struct dependents *dependents, const struct kube_response *response);

/* children-wait.c */
/* As it is since it was applied. */
void wait_judge(struct dependents *dependents, struct dependent *dependent, const char *json, size_t size);
/* false: no definition of its kind is in the same answer, or that has had its time. */
bool wait_for_kind(struct dependents *dependents, struct dependent *dependent);
void wait_begin_for_kinds(
        struct dependents *dependents); /* ends the run: the attempt goes on without a worker */
/* What the attempt has done before it waited. */
void wait_take_over(struct dependents *dependents);
int wait_next(struct dependents *dependents);                       /* of the phase table */
int wait_take_ready(struct run *run, const struct park_plan *plan); /* of the answer that is waited for */
void wait_finish(struct dependents *dependents);
/* It was asked for, and the server did not say how it is. */
void dependents_note_refused(struct dependents *dependents, const struct dependent *dependent,
                             const struct kube_error *error);
/* Once a turn of a plan: its time counts only while the server answers. */
void park_count_time(struct dependents *dependents);
/* Microseconds until the next turn, when the server did not. */
uint64_t park_silence_delay(const struct dependents *dependents);
/* It is looked at again. */
void dependents_note_unready(struct dependents *dependents, const struct dependent *dependent,
                             const char *why);

/* children-undo.c */
/* Ends the run: it goes on without a worker. */
void park_run(struct run *run, const struct park_plan *plan, uint64_t after_usec, const char *text);
/* 1: sent. Before it is applied: what is there. Then: whether that was changed. */
int previous_look(struct dependents *dependents, const struct dependent *dependent);
void previous_note_touched(struct dependent *dependent, const struct kube_response *response);
/* false: there is nothing to undo; otherwise the run was ended. */
bool rollback_begin(struct dependents *dependents, char *cause);
void rollback_finish(struct dependents *dependents, const char *trouble);
int rollback_next(struct dependents *dependents); /* of the phase table */

/* By the clock of the ledger: its deadlines outlive the process, and setting the machine's clock does not
 * move them. */
uint64_t park_now(const struct run *run);
