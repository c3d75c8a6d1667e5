/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An apply that would change nothing is not sent: where the watch `owns` the kind, and the store shows the
 * very version that our last apply of the same text made or found. If others change it meanwhile, the store
 * shows that sooner or later, and that is a reason to run. Nobody watches other kinds, so they are applied
 * each time.
 */
#include "worker/dependents/dependents.h"

/* Whether applying this body would change nothing; then it counts as applied, and is judged for
 * readiness. */
bool unchanged_is_applied(struct dependents *dependents, struct dependent *dependent,
                          const struct text *body);
/* The body that was asked about last was applied, with this answer. */
void unchanged_note_applied(struct dependents *dependents, const struct kube_response *response);
