/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sockets to listen on, at "address:port", "[address]:port" or "unix:/path". */
#include <stdbool.h>

#include "base/error.h"

/* A listening socket, or a negative errno with a text. kept: listen_keep() has kept this port. *ret_socket_path becomes the
 * path of a Unix socket, which the caller frees, and removes at the end; for other sockets it stays as it is. */
int listen_open(const char *where, bool kept, char **ret_socket_path, struct error *error);

/* A socket that does not listen, but keeps the port: while it is open only listen_open() of the same user gets it (SO_REUSEPORT
 * of socket(7)), so nobody takes it while the process that listens there restarts. Or a negative errno:
 * -EADDRINUSE if somebody has the port, -EAFNOSUPPORT for a Unix socket. */
int listen_keep(const char *where);
