/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a request proves to the server who we are, and checks the server. */
#include "kube/libcurl.h"
#include "kube/transfer.h"

/* Sets TLS and authentication of a request; libcurl has copies. -ENOMEM. */
int kube_credential_use(CURL *easy, const struct kube_credential *credential);
