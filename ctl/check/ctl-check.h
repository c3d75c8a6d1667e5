/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

#include "config/config.h"

/* Checks a configuration file and says every problem; returns the exit code. */
int ctl_check(const char *path, bool json);

/* The configuration (NULL: of the default place), which the caller frees, or NULL with every mistake said.
 */
struct config *ctl_load_config(const char *path);
