/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The address of the API server and the credential for it, from kubeconfig files or from the pod's service account.
 * The rules are those of client-go's clientcmd.
 *
 * Search: the explicit path (must exist, is not merged); else $KUBECONFIG (a list: missing and empty files
 * are skipped, of maps the first file that has an entry wins, of scalars the first that sets it); else
 * ~/.kube/config; else, when KUBERNETES_SERVICE_HOST is set, the service account's folder.
 * RECONCILED_SERVICE_ACCOUNT_FOLDER replaces that folder (for tests outside a pod).
 */
#include "base/error.h"
#include "kubeconfig/value.h"

struct kubeconfig_options {
        const char *path;    /* "" or NULL: search */
        const char *context; /* "" or NULL: current-context */
        bool trusted; /* refuse files that others than root and we decide about (file_check_source()) */
};

/* 0; -EINVAL: wrong or incomplete, with file:line: key in the error; -ENOENT: nothing found anywhere; or the
 * errno of a file that cannot be read. */
int kubeconfig_load(const struct kubeconfig_options *options, struct kubeconfig *ret, struct error *error);
