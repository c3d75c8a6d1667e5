/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* Whether the operator is healthy, or ready; says why not; returns the exit code. */
int ctl_health(const char *runtime_directory, bool ready, bool json);
