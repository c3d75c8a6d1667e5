/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What all runs of a torture have in common: the configuration of one watch, its objects, and what they need. */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "config/config.h"
#include "ctl/torture/torture.h"

#define TRIAL_ATTEMPTS 6 /* then a failing object is given up */

struct trial {
        const struct config *config;
        const struct config_watch *watch;
        cJSON *tree;    /* the configuration, as it was written */
        cJSON *loaded;  /* a list: what is there before the operator starts */
        cJSON *subject; /* a list: the objects of the watch */
        char *folder, *manifests;
        char *config_folder; /* absolute: paths of handlers are relative to it */
        const struct torture_options *options;
};

/* Reads configuration and manifests. All but the result is borrowed. 0, or a negative errno with a text. */
int trial_new(const struct torture_options *options, const struct config *config,
              const struct config_watch *watch, struct trial **ret, struct error *error);
void trial_free(struct trial *trial);
DEFINE_CLEANUP(struct trial *, trial_free);

/* Writes the configuration of an operator of this trial: one worker, short backoffs, and no access but by `kubeconfig`.
 * record: a folder; NULL. gate: while this folder exists, the next process of the handler removes it and dies; NULL. */
int trial_write_config(const struct trial *trial, const char *path, const char *kubeconfig,
                       const char *record, const char *gate);
/* "NAMESPACE/NAME": as whom the handler asks the server, if it does. Owned by the caller; NULL: no memory. */
char *trial_account(const struct trial *trial);
/* The schema of the watch's spec; NULL if no definition is among the manifests. */
const cJSON *trial_spec_schema(const struct trial *trial);
/* The member of the objects that people change: "spec", or "data" where there is none. */
const char *trial_spec_name(const struct trial *trial);
