/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "ctl/help.h"

/* Prints what the last word can become, one a line, with a tab and its meaning if there is one; ":files":
 * a file. Prints nothing if it does not know. Returns the exit code. */
int ctl_complete(const struct command_line *line, const char *runtime_directory, int count, char **word);
