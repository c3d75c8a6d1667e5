/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The service account of the pod that we run in. */
#include "base/error.h"
#include "kubeconfig/value.h"

/* Fills *ret. 0; -ENOENT: this is no pod; -EINVAL or the errno of a file, with
 * its path in the error. */
int kubeconfig_in_cluster(struct kubeconfig *ret, struct error *error);
