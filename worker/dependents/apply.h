/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Applying what the answer wants, one after the other, in the order of kinds. */
#include "worker/dependents/dependents.h"

/* Phases (phases.c). First the kinds are looked up, and no two dependents may be the same object; then
 * each is applied, unless that would change nothing. */
int apply_resolve_next(struct dependents *dependents);
int apply_next(struct dependents *dependents);
