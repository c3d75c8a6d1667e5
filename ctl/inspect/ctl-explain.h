/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* argument: watch, key. Why the object did or did not run; returns the exit code. */
int ctl_explain(const char *runtime_directory, char **argument, bool json);
