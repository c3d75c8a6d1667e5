/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <cjson/cJSON.h>
#include <stdbool.h>

enum form { FORM_PEOPLE, FORM_JSON, FORM_YAML };

/* Asks, and writes the answer in that form; for people `print` does. argument: NULL-terminated, or NULL.
 * Returns the exit code. */
int ctl_show(const char *runtime_directory, const char *command, const char *const *argument, enum form form,
             void (*print)(const cJSON *answer, const void *userdata), const void *userdata);
