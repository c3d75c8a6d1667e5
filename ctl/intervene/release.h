/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Taking our finalizers off. Nothing is done before somebody said yes. */
#include <stdbool.h>
#include <stdint.h>

struct consent {
        bool yes;  /* it was said that this is meant */
        bool json; /* a program: it is not asked */
};

/* argument: watch, key. timeout_usec: while nothing moves. Return exit codes. */
int ctl_release_finalizer(const char *runtime_directory, char **argument, const char *why,
                          const struct consent *consent);
int ctl_uninstall_cancel(const char *runtime_directory, const struct consent *consent);
int ctl_uninstall(const char *runtime_directory, uint64_t timeout_usec, const struct consent *consent);
