/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Carrying out `children`: each is applied (server-side apply) in the order of kinds, what was left out is
 * deleted, and when the object goes they go. An annotation on the object, OPERATOR/children, remembers what
 * the object has. The annotation is written before a dependent is made, and shortened when it is gone:
 * nothing is made that is not remembered, and no list of the server is needed, unless somebody has taken the
 * annotation off (recall.h). Whose an object is, it says itself (ownership.h), whatever the annotation says; it is written
 * as the handler was shown it, or not at all.
 */
#include "worker/run/run.h"

/* Before the handler: asks for children that the stores lack (present.h). false: there are none; else it ends in the
 * stage of the handler, or in run_finish(). */
bool dependents_look(struct run *run);
/* Whether there is anything to do for the answer, or for an object that goes. */
bool dependents_are_due(struct run *run);
/* A step of write/write.c: ends in step_done() or run_finish(). Called again, it goes on. 0, or why it
 * cannot begin. */
int dependents_send(struct run *run);
/* Goes on with a parked attempt: run->order->settling has its plan. Ends in run_finish(), or in another
 * stage of the run. */
void dependents_go_on(struct run *run);
