/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/error.h"

/* A listening socket for "address:port", "[address]:port" or "unix:/path", or a negative errno with a text.
 * Of a Unix socket *ret_socket_path is its path, which the caller frees, and removes at the end; else it
 * stays. */
int gateway_listen(const char *where, char **ret_socket_path, struct error *error);
