/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Applying what the answer wants, one after the other, in the order of kinds. */
#include "worker/dependents/dependents.h"

/* Phases (children.c). First the kinds are looked up, and no two dependents may be the same object; then
 * each is applied, unless that would change nothing. */
_warn_unused_ int apply_resolve(struct dependents *dependents) _suspends_;
_warn_unused_ int apply_wanted(struct dependents *dependents) _suspends_;
