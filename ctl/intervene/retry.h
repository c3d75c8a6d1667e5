/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* Makes all due that have failed. argument: a watch, or nothing: all; returns the exit code. */
int ctl_retry_all(const char *runtime_directory, char **argument, bool json);
