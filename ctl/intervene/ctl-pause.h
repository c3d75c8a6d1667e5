/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* Return exit codes. */
int ctl_pause(const char *runtime_directory, const char *watch, const char *why, bool json);
int ctl_resume(const char *runtime_directory, const char *watch, bool json);
