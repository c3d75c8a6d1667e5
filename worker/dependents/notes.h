/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reading what the annotations and labels of an object say. Pure data: no request is made. */
#include "worker/dependents/dependent.h"
#include "worker/run-state.h"

#define NOTES_TOOLING "reconciled/" RECONCILED_VERSION
#define NOTES_PART_OF "applyset.k8s.io/part-of"

/* The text of an annotation, or of a label, of the object in `json`. Owned by the caller; NULL: there is
 * none, or no memory. */
char *notes_find(const char *json, bool label, const char *key);
/* Likewise an annotation with this key, OPERATOR/..., or with a former name of the operator. */
char *notes_find_own(const struct run *run, const char *json, const char *key);
/* The list of dependents that the run's watch keeps on the object in `json`; likewise. */
char *notes_find_record(const struct run *run, const char *json);
/* Visits each list of dependents on the object, of any operator and watch. key: of its annotation. Returns a
 * negative errno, or what the callback returns, if that is negative. */
typedef int (*notes_record_t)(const char *key, const struct dependent_list *list, void *userdata);
int notes_visit_records(const char *json, notes_record_t callback, void *userdata);

/* Whether a list with this key is one of this operator. */
bool notes_are_of_operator(const struct run *run, const char *key);
/* Whether such a list is another watch's whose finalizer is not on the object: nobody else will clean up what
 * is in it. */
bool notes_are_left(const struct run *run, const char *key);
bool notes_have_left_records(const struct run *run);
