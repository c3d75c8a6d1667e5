/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks that another program makes. Private to config/. */
#include "config/config.h"
#include "config/internal.h"

void check_program(struct reader *reader, yaml_node_t *node, const char *key,
                   const char *program); /* a jq program */
void check_kubeconfig(struct reader *reader, yaml_node_t *node, const char *key, const char *path);
void check_certificate(struct reader *reader, const char *certificate_file, const char *key_file);
/* Whether its handler would act as the operator itself (handler.kubernetes). */
void check_separate(struct reader *reader, const struct config_watch *watch);

/* The cluster that `cluster` in the configuration names. */

/* Whether the kubeconfig that `cluster` names can be used, as the credential process reads it: 0, or a
 * negative errno with its text. Where the search decides (cluster.kubeconfig is not set) that is for its
 * start to say: 0. */
int config_check_cluster(const struct config *config, struct error *error);
