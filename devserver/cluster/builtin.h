/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The core kinds. */
#include "devserver/server.h"

void builtin_add(struct server *server);            /* and the namespaces that each cluster has */
void builtin_renew_identity(struct server *server); /* kube-system gets another UID */
