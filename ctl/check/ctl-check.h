/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

#include "config/config.h"

/* Checks a configuration file and prints every problem; returns the exit code. */
int ctl_check(const char *path, bool json);

/* Loads the configuration (NULL: from the default place), which the caller frees. NULL if it has mistakes,
 * which are printed. */
struct config *ctl_load_config(const char *path);
