/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether a handler (handler.kubernetes, handler.credentials) would act on the API server as the operator itself does. */
#include "base/error.h"
#include "kubeconfig/value.h"

/* -EINVAL with the words, where `path` leads to the operator's own credential. */
int separate_check(const struct kubeconfig *own, const struct kubeconfig *other, const char *path,
                   struct error *error);
/* The same for a file that is handed on as it is: a kubeconfig, a token, a key, or what has nothing to do with it. */
int separate_check_file(const struct kubeconfig *own, const char *path, const char *bytes, size_t size,
                        struct error *error);
/* The same for a service account, as far as the operator's token says whose it is. namespace_name "": that
 * of the operator. */
int separate_check_account(const struct kubeconfig *own, const char *namespace_name, const char *account,
                           struct error *error);
