/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What convinces the server of us, and us of the server. */
#include "kube/libcurl.h"
#include "kube/transfer.h"

/* Sets TLS and authentication of a request; libcurl has copies. -ENOMEM. */
int kube_credential_use(CURL *easy, const struct kube_credential *credential);
