/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* reconciledctl: asks a running operator over its control socket, and checks configurations. */
#include <cjson/cJSON.h>

#include "base/error.h"

/* Asks `command` and returns the answer as a tree that the caller owns. -ENOENT: no operator runs there;
 * -EACCES: it refuses us; -EPROTO and others with a text. */
int ctl_query(const char *runtime_directory, const char *command, cJSON **ret, struct error *error);

/* Writes the status for people. */
void ctl_print_status(const cJSON *status);

/* Checks a configuration file and says every problem; returns the exit code. */
int ctl_check(const char *path);
