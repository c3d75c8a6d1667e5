/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The other watches of the same kind. Each notes its finalizer and its dependents on an object under names of
 * its own. An object may be selected by several, and move from one to another: then whoever of both comes
 * first puts the new one's finalizer on in the same request that takes the old one's off. Which of them
 * select the object is asked of the API server, by its name and their selectors: only the API server knows
 * it of the object as it is now.
 */
#include "worker/dependents/dependent.h"
#include "worker/worker.h"

enum sibling_state { SIBLING_UNKNOWN, SIBLING_SELECTS, SIBLING_SELECTS_NOT };

struct sibling {
        struct worker_watch *watch;
        enum sibling_state state;
};

/* A step of write.c, before our finalizer is written and before dependents are: what is needed is asked. */
int sibling_is_due(struct run *run); /* negative: the run was ended */
int sibling_send(struct run *run);
/* After others have written to the object: asked anew. */
void sibling_forget(struct run *run);
void sibling_done(struct run *run);

/* A list of dependents on the object, of any operator and watch: its annotation's key. Returns what the
 * callback does, if that is negative. */
typedef int (*notes_record_t)(const char *key, const struct dependent_list *list, void *userdata);
int notes_visit_records(const char *json, notes_record_t callback, void *userdata);
/* Of another watch, or of another operator: its dependents are let be. */
bool sibling_keeps(const struct run *run, const char *key);
/* Of another watch of ours that selects the object no more, and whose dependents we take over. */
bool sibling_is_left(const struct run *run, const char *key);
bool sibling_has_left_list(struct run *run);
/* A finalizer on an object that goes or leaves the selection: one that this watch has put on under the name
 * that it had before it got an id. Of another watch that selects the object it is not. */
bool sibling_has_left(const struct run *run, struct span finalizer);
