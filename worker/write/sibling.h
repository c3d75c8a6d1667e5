/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Siblings: the other watches of the same kind. Each watch notes its finalizer and its dependents on an
 * object under names of its own. Several may select the same object, and an object may move from one to
 * another: then the first of the two to handle it puts the new watch's finalizer on in the same request that
 * takes the old one's off. The API server is asked which of them select the object, by the object's name and
 * their selectors: only the server knows what the object is now. A dependent is in one list at a time; what
 * follows when two handlers name it is decided by dependents/clash.c.
 */
#include "object/scan.h"
#include "worker/run/run.h"

enum sibling_state { SIBLING_UNKNOWN, SIBLING_SELECTS, SIBLING_SELECTS_NOT };

struct sibling {
        struct worker_watch *watch;
        enum sibling_state state;
};

/* Steps of write.c, before our finalizer is written and before dependents are: whether the server is to be
 * asked. 1, 0; negative: the run was ended. */
int sibling_is_due(struct run *run);
int sibling_send(struct run *run);
/* After others have written to the object: the siblings are to be asked anew. */
void sibling_forget(struct run *run);
void sibling_done(struct run *run);
/* Lists those whose finalizer is on the object now, in run->siblings.holder, and returns how many they are; for
 * an object that has left this watch. */
size_t sibling_list_holders(struct run *run);

/* Whether the list of dependents under this annotation belongs to another watch or operator, so that what is
 * in it is left alone. */
bool sibling_keeps(const struct run *run, const char *key);
/* The other watch of ours that it belongs to and that selects the object, as far as is known; NULL: there is
 * none. */
const struct sibling *sibling_holder(const struct run *run, const char *key);
/* Whether it belongs to another watch of ours that does not select the object any more: we take over what is
 * in it. */
bool sibling_is_left(const struct run *run, const char *key);
/* Whether the object has such a list. */
bool sibling_has_left_list(struct run *run);
/* Whether this finalizer, on an object that goes or leaves the selection, is one that this watch has put on
 * under the name that it had before it got an id. A finalizer of a watch that selects the object is not. */
bool sibling_has_left(const struct run *run, struct span finalizer);
