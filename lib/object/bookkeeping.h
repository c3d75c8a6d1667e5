/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The notes of an operator on an object: finalizers, lists of children and of what is patched, the marks of an ApplySet, the
 * conditions that tell how runs go. A kind's only watch has OPERATOR/finalizer and OPERATOR/children. A
 * watch with an `id` has OPERATOR/ID.finalizer and OPERATOR/ID.children, so that watches of one kind keep
 * theirs apart.
 */
#include "object/scan.h"

#define FINALIZER_NAME "finalizer"
#define CHILDREN_NAME  "children"
#define PATCHED_NAME   "patched"
#define EPOCH_NAME                                                                                          \
        "epoch" /* OPERATOR/epoch, of all watches: which lead has written it first (worker/tenure.h) */
#define SET_KEY         "applyset.k8s.io/id"
#define TOOLING_KEY     "applyset.k8s.io/tooling"
/* an annotation of the ConfigMap of a schedule or `startup`: whose it is */
#define INSTANCE_KEY    "app.kubernetes.io/instance"
#define GROUP_KINDS_KEY "applyset.k8s.io/contains-group-kinds"

/* Which notes on an object are no reason to run. A text that is NULL counts as "". */
struct bookkeeping {
        const char *finalizers; /* the watch's own, with commas between them, which never count */
        const char *
                shared; /* the operator's name where several of its watches, or replicas, may have the object: then
                                   nothing counts that any of them notes; "" = there is one watch */
        const char *conditions; /* likewise: types of conditions, with commas between them (TRIGGER_ANY) */
};

/* Whether a JSON string is OPERATOR/NAME or OPERATOR/ID.NAME. operator_name NULL: of any operator. */
bool bookkeeping_is_key(struct span key, const char *operator_name, const char *name);
/* Takes the first name of a list with commas between them. false: there is none, or it is too long. */
bool bookkeeping_next_word(const char **list, char *word, size_t size);
/* Whether it is in a list with commas between its words. */
bool bookkeeping_has_word(const char *list, struct span word);

/* Finds our finalizer in an object's metadata, with the scanner. finalizers: the names that it has had as well, with commas
 * between them. */
struct finalizer_view {
        bool ours;     /* one of them is on the object */
        bool deleting; /* the object has a deletionTimestamp */
};

int finalizer_look(const char *json, size_t size, const char *finalizers, struct finalizer_view *ret);
