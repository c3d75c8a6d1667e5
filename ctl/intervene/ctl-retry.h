/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* Makes objects due: all of one watch (`all`), or those that have failed, of one watch or of all. argument: the
 * watch, or nothing. Returns the exit code. */
int ctl_retry_many(const char *runtime_directory, bool all, char **argument, bool json);
