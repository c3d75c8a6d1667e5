/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The annotations on the object that remember its dependents: they are read, written before a dependent
 * is made, and shortened when it is gone. */
#include "worker/dependents/dependents.h"

/* Reads the lists on the object into `known` and `kept`. 0, or that they cannot be read. */
int remember_read(struct dependents *dependents);
/* 0; negative: the object is the parent of another tool's ApplySet, and the run has ended. */
_warn_unused_ int remember_check_set(struct run *run);
/* Writes the list of children: those of the answer, and known ones that are not settled yet. 0; -EAGAIN: others have written
 * to the object, and its present list is known now; another negative: it cannot be sent, or the run has ended. */
_warn_unused_ int remember_send(struct dependents *dependents) _suspends_;
/* A phase (children.c): nothing is made that is not remembered. */
_warn_unused_ int remember_wanted(struct dependents *dependents) _suspends_;
/* A phase (children.c): what is settled is forgotten. */
_warn_unused_ int remember_forget(struct dependents *dependents) _suspends_;
