/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

struct logs_options {
        int count; /* arguments: watch, perhaps a key, options of journalctl */
        char **argument;
        bool follow, json;
};

/* Becomes journalctl; returns an exit code only when that fails. */
int ctl_logs(const char *runtime_directory, const struct logs_options *options);
