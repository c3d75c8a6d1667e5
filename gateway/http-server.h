/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The HTTP server: three documents to GET, nothing to send. */
#include <stdbool.h>

#include "base/error.h"
#include "gateway/report.h"
#include "http/http-loop.h"

/* A listening socket for "address:port", "[address]:port" or "unix:/path", or a negative errno with a text.
 * *ret_socket_path becomes the path of a Unix socket, which the caller frees, and removes at the end; for other
 * sockets it stays as it is. */
int gateway_listen(const char *where, char **ret_socket_path, struct error *error);

/* Whether this Authorization header (or NULL) carries the bearer token that the file holds now. */
bool gateway_token_matches(const char *file, const char *authorization);

struct gateway_server {
        int listen_fd; /* owned; -1: none */
        struct http_loop loop;
        const struct report *report; /* borrowed */
        const char *token_file;      /* borrowed; "": everybody may read the metrics */
        /* Of the document, for all who ask: plain, OpenMetrics; NULL: not asked for. */
        struct MHD_Response *response[2];
};

/* Serves what `report` says on listen_fd. 0 or a negative errno. */
int gateway_server_start(struct gateway_server *server, sd_event *event, const struct report *report,
                         const char *token_file);
void gateway_server_renew(struct gateway_server *server); /* there is another document */
void gateway_server_stop(struct gateway_server *server);  /* closes listen_fd */
