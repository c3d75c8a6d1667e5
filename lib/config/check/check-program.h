/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks that other programs of ours make. libjq, GnuTLS and readers of credentials are nothing for a process that must
 * stay small and must not fall: reconciled-jq, reconciled-gateway and reconciled-credential are asked, which takes some
 * milliseconds. Before the start and before a reload: what is wrong is a mistake like any other.
 */
#include "config/config.h"
#include "config/internal.h"

void check_program(struct reader *reader, yaml_node_t *node, const char *key,
                   const char *program); /* a jq program */
void check_kubeconfig(struct reader *reader, yaml_node_t *node, const char *key, const char *path);
void check_certificate(struct reader *reader, const char *certificate_file, const char *key_file);
/* Whether its handler would act as the operator itself (handler.kubernetes). */
void check_separate(struct reader *reader, const struct config_watch *watch);

/* Whether the kubeconfig that `cluster` names can be used, as the credential process reads it: 0, or a negative
 * errno with its text. 0 also if cluster.kubeconfig is not set: then the credential process finds the file when
 * it starts. */
int config_check_cluster(const struct config *config, struct error *error);
