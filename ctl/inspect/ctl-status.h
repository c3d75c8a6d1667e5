/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <cjson/cJSON.h>
#include <stdbool.h>

/* Writes the status for people. */
void ctl_print_status(const cJSON *status, bool wide);
void ctl_print_doubtful(const cJSON *list); /* with an empty line before them */
