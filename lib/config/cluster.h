/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cluster that `cluster` in the configuration names. */
#include "config/config.h"

/* Whether the kubeconfig that `cluster` names can be used, as the credential process reads it: 0, or a
 * negative errno with its text. Where the search decides (cluster.kubeconfig is not set) that is for its
 * start to say: 0. */
int config_check_cluster(const struct config *config, struct error *error);
