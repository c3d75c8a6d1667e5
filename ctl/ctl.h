/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* reconciledctl: asks a running operator over its control socket, and checks configurations. */
#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/error.h"

/* Asks `command` and returns the answer as a tree that the caller owns. -ENOENT: no operator runs there;
 * -EACCES: it refuses us; -EPROTO and others with a text. */
int ctl_query(const char *runtime_directory, const char *command, cJSON **ret, struct error *error);
/* With arguments, NULL-terminated; the answer is not looked at. */
int ctl_command(const char *runtime_directory, const char *command, char **argument, struct error *error);

/* Says what failed; returns the exit code. */
int ctl_failed(int status, const struct error *error);

/* argument: watch, key. Return exit codes. */
int ctl_release_finalizer(const char *runtime_directory, char **argument, const char *why, bool yes);
int ctl_uninstall(const char *runtime_directory, bool yes);

/* Writes the status for people. */
void ctl_print_status(const cJSON *status);

/* Checks a configuration file and says every problem; returns the exit code. */
int ctl_check(const char *path);

/* Whether the operator is healthy, or ready; says why not; returns the exit code. */
int ctl_health(const char *runtime_directory, bool ready);

#define RBAC_PLURALS_MAX 64

struct rbac_options {
        const char *namespace, *service_account; /* where the operator runs, as whom */
        const char *plural[RBAC_PLURALS_MAX];    /* "Kind=plural" */
        size_t plural_count;
};

/* Writes the roles that a configuration needs; returns the exit code. */
int ctl_rbac(const char *path, const struct rbac_options *options);
