/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Orders to a running operator. */
#include <stdbool.h>
#include <stdint.h>

struct consent {
        bool yes;  /* the user has confirmed it (--yes) */
        bool json; /* a program asks: no confirmation */
};

/* Taking our finalizers off. Nothing is done before somebody said yes. argument: watch, key. timeout_usec:
 * while nothing moves. Return exit codes. */
int ctl_release_finalizer(const char *runtime_directory, char **argument, const char *why,
                          const struct consent *consent);
int ctl_uninstall_cancel(const char *runtime_directory, const struct consent *consent);
int ctl_uninstall(const char *runtime_directory, uint64_t timeout_usec, const struct consent *consent);

/* Return exit codes. */
int ctl_pause(const char *runtime_directory, const char *watch, const char *why, bool json);
int ctl_resume(const char *runtime_directory, const char *watch, bool json);

/* Reads the configuration again, and waits for the end of that. Gives up when the operator has not answered for
 * `timeout_usec`. */
/* successor: the member that is to lead; "": any. */
int ctl_step_down(const char *runtime_directory, const char *successor, bool json);
int ctl_reload(const char *runtime_directory, uint64_t timeout_usec, bool json);

/* Makes objects due: all of one watch (`all`), or those that have failed, of one watch or of all. argument: the
 * watch, or nothing. Returns the exit code. */
int ctl_retry_many(const char *runtime_directory, bool all, char **argument, bool json);
