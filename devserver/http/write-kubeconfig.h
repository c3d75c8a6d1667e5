/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/error.h"
#include "devserver/server.h"

/* Writes the kubeconfig that works with this server to server->kubeconfig, if there is one: replaced as a
 * whole, readable for its user alone. 0, -ENOMEM or -EIO. */
int kubeconfig_write(const struct server *server, struct error *error);
