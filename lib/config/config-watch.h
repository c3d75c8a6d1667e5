/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The watches of a configuration. */
#include "config/config.h"

const struct config_watch *config_watch_find(const struct config *config, const char *name); /* or NULL */
bool config_is_of_kind(const struct config_watch *a, const struct config_watch *b); /* in any version */
/* The watch does not want its finalizer: a leftover one is taken off. */
bool config_releases(const struct config_watch *watch);
