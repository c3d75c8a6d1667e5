/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "ipc/message.h"
#include "kubeconfig/value.h"

/* What stands in a kubeconfig, as others are told it. The texts are borrowed from `config`; `ret->header` is the
 * caller's to free. 0 or -ENOMEM (then as well). */
int credential_message(const struct kubeconfig *config, uint64_t serial, struct message_credential *ret);
