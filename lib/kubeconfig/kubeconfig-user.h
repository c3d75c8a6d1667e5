/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts of a kubeconfig's user that are more than a value: impersonation and exec plugins. Private to
 * lib/kubeconfig/. Each: 0, or negative with the place in the file's error. */
#include "kubeconfig/value.h"
#include "kubeconfig/yaml-file.h"

int user_take_impersonation(struct yaml_file *file, yaml_node_t *user, struct kubeconfig *config);
int user_take_exec(struct yaml_file *file, yaml_node_t *user, struct kubeconfig *config);
/* The cluster's message to plugins: its extension client.authentication.k8s.io/exec. */
int cluster_take_exec_config(struct yaml_file *file, yaml_node_t *cluster, struct kubeconfig *config);
