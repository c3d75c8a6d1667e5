/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Deleting what the answer does not want any more, and everything when the object goes. */
#include "worker/dependents/dependents.h"

/* Whether the answer leaves it out, and it is still to be deleted. */
bool prune_is_due(const struct dependents *dependents, const struct dependent *dependent);
/* A phase (children.c). */
_warn_unused_ int prune_left_out(struct dependents *dependents) _suspends_;
/* Looks for the kind in all versions of its group; as for dependents_each(). */
_warn_unused_ int prune_search_kind(struct dependents *dependents, struct dependent *dependent) _suspends_;
