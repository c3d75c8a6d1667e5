/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `onFailure: rollback`: an attempt that has failed in its dependents is undone before it counts as over.
 * The run is parked with a plan; each time that the attempt goes on, the phases go through what the plan
 * says.
 */
#include "worker/dependents/dependents.h"

/* Parks the run with what is to be undone. false: there is nothing to undo, and the run goes on. cause: why
 * the attempt has failed; borrowed. */
bool rollback_begin(struct dependents *dependents, char *cause);
/* A phase (phases.c): what the attempt has changed gets back what we had applied before. */
int rollback_next(struct dependents *dependents);
/* Ends the run: with the cause, where all is undone or the time for it is over; else it is parked again.
 * trouble: the failures of this run, or NULL. */
void rollback_finish(struct dependents *dependents, const char *trouble);
