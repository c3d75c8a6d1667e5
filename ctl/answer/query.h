/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Questions to a running operator, over its control socket. Blocking, ten seconds at most. */
#include <cjson/cJSON.h>

#include "base/error.h"

/* Asks `command` and returns the answer as a tree that the caller owns. -ENOENT: no operator runs there;
 * -EACCES: it refuses us; -EPROTO and others with a text. */
int ctl_query(const char *runtime_directory, const char *command, cJSON **ret, struct error *error);
int ctl_query_about(const char *runtime_directory, const char *command, char **argument, cJSON **ret,
                    struct error *error);
/* With arguments, NULL-terminated; the answer is not looked at. */
int ctl_command(const char *runtime_directory, const char *command, char **argument, struct error *error);
