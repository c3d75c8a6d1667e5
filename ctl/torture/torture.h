/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `reconciledctl torture`: the user's configuration and handlers on an API server in memory, once for each write and each
 * fault that may meet it. Whatever happens on the way, the end must be the same.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TORTURE_FILES_MAX 32

struct torture_options {
        const char *config, *watch; /* NULL: the default place; the only watch */
        const char *object[TORTURE_FILES_MAX];
        size_t object_count;        /* 0: the manifests beside the configuration */
        const char *only;           /* names of cases, with commas between them; NULL: all */
        const char *junit;          /* a file; NULL */
        const char *record;         /* a folder for the recordings of cases that fail; NULL */
        const char *seed, *minutes; /* numbers as texts; NULL */
        uint64_t timeout_usec;      /* without progress */
        bool run_anyway, json;
};

/* Returns the exit code: 0 all cases end alike, 1 one does not. */
int ctl_torture(const struct torture_options *options);
