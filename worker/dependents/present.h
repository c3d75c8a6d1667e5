/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Before the handler runs: a child of an owned kind that the object's list names, and that the store does not show as
 * this object's, is asked for. The watch of its kind may be broken or late, a selector may hide it, and somebody may have
 * taken its owner reference off: a handler that is not shown it would generate its content again. After a conflict all
 * of them are asked for, because the store may be behind.
 */
#include "worker/dependents/dependents.h"

/* Whether there is such a child. */
bool present_is_due(const struct run *run);
/* A phase (children.c). */
_warn_unused_ int present_look(struct dependents *dependents) _suspends_;
