/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether handlers that are to run as another user can: asked before anything is started, and before a
 * reload, with the rights that this process has. And whether they could read what they must not.
 */
#include "config/config.h"

struct supervisor;

/* Adds to the problems: -EINVAL; -ENOMEM. */
int separation_check(const struct config *config, struct config_problems *problems);
void separation_warn(const struct supervisor *supervisor); /* which handlers could read what */

/* Takes control groups where they are delegated to us; a limit that does not hold is logged at once, not when
 * it fails to hold. Before the first child is started. */
void limits_prepare(struct supervisor *supervisor);
