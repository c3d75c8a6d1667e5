/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `reconciledctl init`: the folder of a new operator, which works at once. */
#include <stdbool.h>
#include <stddef.h>

#define INIT_FIELDS_MAX 32

struct init_options {
        const char *folder;                 /* its last part names the operator */
        const char *kind, *group;           /* kind NULL: it is missing */
        const char *language;               /* "sh", "python" ... */
        const char *child;                  /* a kind; NULL if there is none */
        const char *plural;                 /* NULL: as one says it */
        const char *field[INIT_FIELDS_MAX]; /* "name:type" */
        size_t field_count;
        bool finalizer;
};

/* Writes the folder, which must not exist; returns the exit code. */
int ctl_init(const struct init_options *options, bool json);
