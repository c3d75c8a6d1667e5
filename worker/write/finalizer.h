/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Our finalizer on the run's object, and what goes from one watch of a kind to another with it. */
#include "worker/run-state.h"

/* Whether it is on the object: 1, 0; negative: the run has ended. */
int finalizer_is_there(struct run *run);
/* Steps of write.c, before the handler and last of all: whether it must be put on or taken off. 1, 0;
 * negative: the run has ended. */
int finalizer_is_wrong(struct run *run);
int finalizer_must_go(struct run *run);
/* Writes it, in both steps. As what each step sends (write.c): 0; -EAGAIN: it begins again, with the object as it is now;
 * another negative: why it cannot be sent, or the run has ended. */
_warn_unused_ int finalizer_send(struct run *run) _suspends_;

/* Takes the answer to a write of a note, `what`, `name` for short; the handler sees the object with it. As a step's send. */
_warn_unused_ int note_take_written(struct run *run, const char *what, const char *name,
                                    const struct kube_response *response) _suspends_;

/* A step of write.c, before the handler: notes of the watch under a former name of the operator get its present name. */
int notes_are_former(struct run *run);
_warn_unused_ int notes_rename(struct run *run) _suspends_;

/*
 * An object that is deleted with --cascade=orphan: its children stay. The API server puts the finalizer `orphan` on it, and the
 * garbage collector takes that off as soon as no child refers to the object any more, long before a handler has cleaned up.
 * Children that cannot refer to it, in other namespaces for example, say nothing of that; so the annotation
 * OPERATOR/orphaned keeps it.
 */
/* Whether the object's children are to stay, as far as the object says so. */
bool orphan_is_wanted(const struct run *run);
/* A step of write.c, before the handler: writes the annotation. */
int orphan_is_unnoted(struct run *run);
_warn_unused_ int orphan_send(struct run *run) _suspends_;
