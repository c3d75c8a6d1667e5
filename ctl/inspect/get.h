/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "ctl/answer/show.h"

struct get_options {
        const char *state;             /* "failing", "waiting", "quarantined" */
        const char *watch, *namespace; /* "": all */
        enum form form;
};

/* Lists objects in trouble; returns the exit code. */
int ctl_get(const char *runtime_directory, const struct get_options *options);
