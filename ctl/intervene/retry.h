/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* Makes all due that have failed. argument: a watch, or nothing: all; returns the exit code. */
/* What has failed, of a watch or of all; or all objects of a watch. */
int ctl_retry_many(const char *runtime_directory, bool all, char **argument, bool json);
