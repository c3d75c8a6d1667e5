/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What children.c and children-undo.c share: the machine that goes through an object's children. */
#include "kube/search.h"
#include "object/bookkeeping.h"
#include "worker/dependents/applied.h"
#include "worker/dependents/dependent.h"
#include "worker/dependents/dependents.h"
#include "worker/dependents/parked/plan.h"

enum phase {
        PHASE_RECALL,
        PHASE_RESOLVE,
        PHASE_REMEMBER,
        PHASE_APPLY,
        PHASE_LOOK,
        PHASE_RESTORE,
        PHASE_PRUNE,
        PHASE_FORGET,
        PHASE_COUNT
};

struct children {
        struct run *run;
        struct child_owner owner;
        struct child_list wanted, known; /* by the answer; by the annotation */
        struct child_list kept; /* by the lists of other watches and operators: not ours to delete */
        bool takes_over; /* `known` holds children of a watch that does not select the object any more */
        struct child_list lost; /* kinds whose children are to be looked for: children-recall.c */
        bool recalled;          /* that was done */
        bool own_namespace;     /* ... in the object's namespace alone */
        char *next_page;
        bool cleanup;       /* the object goes: all of them go */
        bool undo;          /* `known` is what the plan says */
        bool wait;          /* ... and are to become ready: nothing is undone */
        bool silent;        /* the server could not take a request about one of them */
        uint64_t asked;     /* by children_now(): since when it is being asked; 0 = all was in the stores */
        uint64_t slow_usec; /* how long its slow answers took; 0 = none was slow */
        char waiting[400];  /* the first that is not ready, and why; "" = none */
        struct settle_plan plan;
        enum phase phase;
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
struct child_object *children_current_child(struct children *children);
/* Counts and keeps for the end that it has failed. child NULL: something of it. */
void children_fail(struct children *children, struct child_object *child, const char *what, const char *why);
/* The same of what the server refused; false: the run was ended. */
bool children_take_refusal(struct children *children, const char *what, const struct kube_error *error,
                           const struct kube_response *response);
/* ... of an answer about the child itself, whose kind may be looked up once more before. */
bool children_take_failure(struct children *children, const char *what,
                           const struct kube_response *response);
/* Whether the next child would fare no better. */
bool children_is_about_server(const struct children *children, const struct kube_error *error);
/* The result of a run whose children have failed. */
enum run_result children_result(const struct children *children);
/* 0: the child's resource is known; 1: it is being asked for, or the run was ended. */
int children_resolve(struct children *children, struct child_object *child);
/* 1: sent. */
int children_request(struct children *children, const struct child_object *child, const char *method,
                     const struct text *body,
                     void (*on_done)(struct kube_transfer *, const struct kube_response *, void *));
/* 1: sent: an apply of this body to what was looked at, if it was; else to whatever has its name. */
int children_send_body(struct children *children, const struct child_object *child, const struct text *body,
                       void (*on_done)(struct kube_transfer *, const struct kube_response *, void *));
void children_advance(struct children *children);
void children_finish_failed(struct children *children);     /* ends the run */
bool children_is_believed(const struct children *children); /* what is said not to be served */

/* children-recall.c */
int children_read_lost(struct children *children);
int children_recall_next(struct children *children); /* of the phase table */

/* children-prune.c */
int children_prune_next(struct children *children); /* of the phase table */
/* Looks for the child's kind in all versions of its group. Goes on, or ends the run. */
void children_search_kind(struct children *children, const struct child_object *child);
/* Nothing of this kind is tried any more in this phase. */
void children_leave_kind(struct children *children, const struct child_object *child);

/* children-record.c */
#define TOOLING     "reconciled/" RECONCILED_VERSION
#define PART_OF_KEY "applyset.k8s.io/part-of"
/* The text of an annotation or a label, owned by the caller; NULL: there is none. */
char *children_find_entry(const char *json, bool label, const char *key);
/* likewise: what is remembered of the object in `json` */
char *children_find_record(const struct run *run, const char *json);
int children_read_record(struct children *children);
/* What identifies it, unless the list has it already. */
int children_copy(const struct child_object *child, struct child_list *list);
/* After others have written to the object: what stands there joins what is known. */
int children_join_record(struct children *children);
/* 1: sent, or the run was ended. A known child stays in the record until it is settled. */
int children_send_record(struct children *children);
int children_remember_next(
        struct children *children); /* of the phase table: nothing is made that is not remembered */
int children_forget_next(struct children *children);

/* children-applied.c */
/* Whether to apply it would change nothing; then it is taken as applied. */
bool children_is_applied(struct children *children, struct child_object *child, const struct text *body);
/* How the store shows a child of a kind that the watch owns. 1: `ret` is the caller's; 0: its kind is not
 * owned, or it is not there. */
int children_in_store(const struct children *children, const struct child_object *child,
                      struct store_object *ret);
void children_note_applied(struct children *children, const struct kube_response *response);

/* children-wait.c */
/* As it is since it was applied. */
void children_judge(struct children *children, struct child_object *child, const char *json, size_t size);
/* false: no definition of its kind is in the same answer, or that has had its time. */
bool children_await_kind(struct children *children, struct child_object *child);
void children_begin_await(
        struct children *children); /* ends the run: the attempt goes on without a worker */
/* What the attempt has done before it waited. */
void children_resume(struct children *children);
int children_look_next(struct children *children); /* of the phase table */
int children_take_ready(struct run *run,
                        const struct settle_plan *plan); /* of the answer that is waited for */
void children_finish_wait(struct children *children);
/* It was asked for, and the server did not say how it is. */
void children_note_refused(struct children *children, const struct child_object *child,
                           const struct kube_error *error);
/* Once a turn of a plan: its time counts only while the server answers. */
void children_count_time(struct children *children);
/* Microseconds until the next turn, when the server did not. */
uint64_t children_silence_delay(const struct children *children);
/* It is looked at again. */
void children_note_unready(struct children *children, const struct child_object *child, const char *why);

/* children-undo.c */
/* Ends the run: it goes on without a worker. */
void children_settle(struct run *run, const struct settle_plan *plan, uint64_t after_usec, const char *text);
/* 1: sent. Before it is applied: what is there. Then: whether that was changed. */
int children_look(struct children *children, const struct child_object *child);
void children_note_touched(struct child_object *child, const struct kube_response *response);
/* false: there is nothing to undo; otherwise the run was ended. */
bool children_begin_undo(struct children *children, char *cause);
void children_finish_undo(struct children *children, const char *trouble);
int children_restore_next(struct children *children); /* of the phase table */

/* By the clock of the ledger: its deadlines outlive the process, and setting the machine's clock does not
 * move them. */
uint64_t children_now(const struct run *run);
