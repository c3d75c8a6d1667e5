/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether the API server serves the kinds of a configuration, by discovery. */
#include "config/config.h"
#include "kubeconfig/value.h"

/* Adds a problem for each kind that it does not serve: an error where another one is nearly the same, or the watch is
 * not required; else a warning, because the definition may come later. No plugin is run. Returns NULL, or why the
 * server could not be asked: owned by the caller. */
char *served_check(const struct config *config, const struct kubeconfig *cluster,
                   struct config_problems *problems);
