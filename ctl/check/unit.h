/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the unit that runs a configuration brings with it, asked of the service manager, so that root looks
 * at the same cluster as the unit does: reconciled.service for RECONCILED_SYSCONFDIR/reconciled.yaml, and
 * reconciled@NAME.service for NAME.yaml beside it.
 */
#include "base/error.h"

/* Characters of an instance's name: "reconciled-NAME" is the name of its user, which may have 31. */
#define UNIT_INSTANCE_MAX 20

struct unit_credential {
        char *unit;   /* "reconciled.service" */
        char *source; /* the file of $KUBECONFIG: what LoadCredential= names, or a path of Environment= */
        char *path;   /* what to load: `source`, or a link to it beside links to the unit's other credentials
                       */
        char *folder; /* temporary, with these links; NULL if there is none */
};

/* 1: found; 0: no such unit, no service manager (or no answer), not root, or the unit brings no kubeconfig;
 * -EINVAL: the instance's name is too long for a unit; another errno: the file of `source` cannot be read.
 * The last two set `error`. `config` is the path of the configuration; NULL: the default. */
int unit_credential_find(const char *config, struct unit_credential *ret, struct error *error);
/* As the unit has it: ${CREDENTIALS_DIRECTORY} in its configuration leads to its credentials. */
void unit_credential_use(const struct unit_credential *credential);
void unit_credential_done(struct unit_credential *credential);
