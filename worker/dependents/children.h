/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Carrying out `children`: each is applied (server-side apply) in the order of kinds, what was left out is
 * deleted, and when the object goes they go. An annotation on the object, OPERATOR/children, remembers what
 * the object has. The annotation is written before a dependent is made, and shortened when it is gone:
 * nothing is made that is not remembered, and no list of the server is needed, unless somebody has taken the
 * annotation off (recall.h). A dependent itself says whose it is (ownership.h), whatever the annotation
 * says; it is written as the handler was shown it, or not at all.
 */
#include "worker/run-state.h"

/* Called before the handler: asks for children that the stores lack (present.h). 0; negative: the run has
 * ended. */
_warn_unused_ int children_look(struct run *run) _suspends_;
/* Whether there is anything to do for the answer, or for an object that goes. */
bool children_are_due(struct run *run);
/* A step of write/write.c. 0; negative: it cannot begin, or the run has ended. */
_warn_unused_ int children_apply(struct run *run) _suspends_;
/* Goes on with a parked attempt: run->order->settling has its plan. What follows in the order of the run (run-state.h);
 * negative: the run has ended. */
_warn_unused_ int children_resume(struct run *run) _suspends_;
