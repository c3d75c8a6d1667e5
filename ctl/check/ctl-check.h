/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* Checks a configuration file and says every problem; returns the exit code. */
int ctl_check(const char *path, bool json);
