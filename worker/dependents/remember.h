/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the object's annotations remember of its dependents: read, written before they are made, shortened. */
#include "worker/dependents/dependents.h"

/* Reads the lists on the object into `known` and `kept`. 0, or that they cannot be read. */
int remember_read(struct dependents *dependents);
/* After others have written to the object: what stands there joins what is known. Likewise. */
int remember_join(struct dependents *dependents);
/* Writes the list: what is wanted, and what is known and not settled yet. 1: sent, or the run was ended;
 * negative: it cannot be sent. */
int remember_send(struct dependents *dependents);
/* Of the phase table (phases.c): nothing is made that is not remembered. */
int remember_next(struct dependents *dependents);
/* Likewise: what is settled is forgotten. */
int remember_forget_next(struct dependents *dependents);
