/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The annotations on the object that remember its dependents: they are read, written before a dependent
 * is made, and shortened when it is gone. */
#include "worker/dependents/dependents.h"

/* Reads the lists on the object into `known` and `kept`. 0, or that they cannot be read. */
int remember_read(struct dependents *dependents);
/* After others have written to the object: adds what stands there to what is known. 0, or that it cannot
 * be read. */
int remember_join(struct dependents *dependents);
/* Writes the list: what is wanted, and what is known and not settled yet. 1: sent, or the run was ended;
 * negative: it cannot be sent. */
int remember_send(struct dependents *dependents);
/* A phase (phases.c): nothing is made that is not remembered. */
int remember_next(struct dependents *dependents);
/* A phase (phases.c): what is settled is forgotten. */
int remember_forget_next(struct dependents *dependents);
