/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks that other programs of ours make. A process that must stay small and must not crash loads neither
 * libjq nor GnuTLS nor readers of credentials: it asks reconciled-jq, reconciled-gateway and
 * reconciled-credential, which takes some milliseconds. It asks before the start and before a reload, so
 * what they find is a mistake like any other.
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
