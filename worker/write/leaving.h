/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An object that leaves its watch, where other watches of ours have the same kind. Each watch notes its
 * finalizer and its dependents on an object under names of its own, and takes off only its own. The watch that
 * is left holds the object, and owes its end, until another one does so: its run waits (SETTLING), and looks
 * again later.
 */
#include "object/scan.h"
#include "worker/run-state.h"

/* Whether the run has to wait: another watch of the kind selects the object, and does not have it yet. */
bool leaving_waits(const struct run *run);
/* Ends the run, which goes on later. */
int leaving_park(struct run *run);
/* Whether the run has waited before; then its handler has run already. */
bool leaving_is_told(const struct run *run);

/* The other watch of the kind that has this id and selects the object, by all but a fieldSelector, which only
 * the API server can judge; NULL if there is none. */
const struct record_watch *leaving_find(const struct run *run, const char *id);
