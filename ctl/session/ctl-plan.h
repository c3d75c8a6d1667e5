/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `reconciledctl plan`: what a new configuration or handler would change: all objects of a watch through the handler, each write
 * as the server's dry run.
 */
#include <stdbool.h>

struct plan_options {
        const char *config, *watch; /* NULL: the default place; the only watch */
        const char *runtime_directory;
        const char *object;   /* a file or folder of objects, in the place of the cluster; NULL */
        const char *selector; /* of labels, beside that of the watch; NULL */
        const char *limit;    /* so many objects at most; NULL */
        const char *gate;     /* "5%": so many may change; NULL */
        bool run_anyway, json;
};

/* Returns the exit code: 0 nothing changes (with a gate: little), 2 something does, 1 a run failed or its effect is unknown. */
int ctl_plan(const struct plan_options *options);
