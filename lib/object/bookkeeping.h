/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The notes of an operator on an object: finalizers, lists of children and of what is patched, the marks of an ApplySet, the
 * conditions that tell how runs go. A kind's only watch has OPERATOR/finalizer and OPERATOR/children. A
 * watch with an `id` has OPERATOR/ID.finalizer and OPERATOR/ID.children, so that watches of one kind keep
 * theirs apart.
 */
#include "object/scan.h"

#define FINALIZER_NAME  "finalizer"
#define CHILDREN_NAME   "children"
#define PATCHED_NAME    "patched"
#define SET_KEY         "applyset.k8s.io/id"
#define TOOLING_KEY     "applyset.k8s.io/tooling"
#define GROUP_KINDS_KEY "applyset.k8s.io/contains-group-kinds"

/* Which notes on an object are no reason to run. All texts may be NULL, as "". */
struct bookkeeping {
        const char *finalizer;  /* the watch's own, which never counts */
        const char *shared;     /* the operator's name where several of its watches may have the object: then
                                   nothing counts that any of them notes; "" = there is one watch */
        const char *conditions; /* likewise: types of conditions, with commas between them (TRIGGER_ANY) */
};

/* Whether a JSON string is OPERATOR/NAME or OPERATOR/ID.NAME. operator_name NULL: of any operator. */
bool bookkeeping_is_key(struct span key, const char *operator_name, const char *name);
/* Whether it is in a list with commas between its words. */
bool bookkeeping_has_word(const char *list, struct span word);

/* Finds our finalizer in an object's metadata, with the scanner. */
struct finalizer_view {
        bool ours;     /* our finalizer is on the object */
        bool deleting; /* the object has a deletionTimestamp */
};

int finalizer_look(const char *json, size_t size, const char *finalizer, struct finalizer_view *ret);
