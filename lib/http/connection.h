/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Questions to libmicrohttpd about one connection. */
#include <microhttpd.h>
#include <stdbool.h>

/* The connection's socket, which stays libmicrohttpd's; -1: it has none. */
int http_connection_fd(struct MHD_Connection *connection);
/* Whether the client has closed its side. libmicrohttpd does not look at a connection that is suspended. */
bool http_client_has_gone(struct MHD_Connection *connection);
/* The value of a header of the request, borrowed until the request is over; NULL: it was not sent. */
const char *http_header(struct MHD_Connection *connection, const char *name);
