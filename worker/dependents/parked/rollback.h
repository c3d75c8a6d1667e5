/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `onFailure: rollback`: an attempt that has failed in its dependents is undone before it counts as over.
 * The run is parked with a plan; each time that the attempt goes on, the phases go through what the plan
 * says.
 */
#include "worker/dependents/dependents.h"

/* Parks the run with what is to be undone. 0: there is nothing to undo; negative: the run has ended. cause: why
 * the attempt has failed; borrowed. */
int rollback_begin(struct dependents *dependents, char *cause);
/* A phase (children.c): what the attempt has changed gets back what we had applied before. */
_warn_unused_ int rollback_restore(struct dependents *dependents) _suspends_;
/* Ends the run: with the cause, where all is undone or the time for it is over; else it is parked again.
 * trouble: the failures of this run, or NULL. */
int rollback_finish(struct dependents *dependents, const char *trouble);
