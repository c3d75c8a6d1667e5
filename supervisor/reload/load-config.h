/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reading and judging the configuration, with a message for each problem. */
#include <stddef.h>

#include "config/config.h"

struct options;

/* Every problem is told (printed for --check, else logged); `first` gets the first one. Negative errno. */
int config_load_and_tell(const struct options *options, struct config **ret, char *first, size_t size);
