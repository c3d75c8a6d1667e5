/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Wanted dependents that are in the list of another watch of the kind, which selects the object as well. An
 * object that leaves a watch hands its list to another one (write/finalizer.c). That list then names what
 * the other handler may never have named. So a list does not tell which handler wants a dependent; the
 * dependent does, by the id of the watch that has applied it last. The rule:
 *
 *   applied last by the watch whose list has it   that handler named it: our run fails and is tried again,
 *                                                 because each later run of that watch may leave it out
 *   applied last by any other watch, or not there it was taken over and not named since: it goes into our
 *                                                 list in the same write that takes it from the other
 */
#include "worker/dependents/dependents.h"

/* A phase (phases.c), between the lookup of the kinds and the write of our list. */
int clash_next(struct dependents *dependents);
