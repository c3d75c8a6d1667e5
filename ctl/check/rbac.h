/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "ctl/check/definitions.h"

#define RBAC_PLURALS_MAX 64

struct rbac_options {
        const char *namespace, *service_account; /* namespace and service account of the operator */
        const char *plural[RBAC_PLURALS_MAX];    /* "Kind=plural" */
        size_t plural_count;
        const char *crd[RBAC_PLURALS_MAX]; /* files with definitions of kinds */
        size_t crd_count;
        struct definitions definitions; /* of these; filled here */
};

/* Writes the roles that a configuration needs, as YAML or one List in JSON; returns the exit code. */
int ctl_rbac(const char *path, struct rbac_options *options, bool json);
