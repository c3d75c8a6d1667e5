/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An HTTP server for tests, inside the test's own event loop: it says exactly the bytes that a test gives
 * it, when the test gives them, so that answers can be cut, slow or wrong. Loopback only.
 */
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/text.h"

#define SERVER_CONNECTIONS_MAX 64

struct server;

struct server_connection {
        struct server *server;
        sd_event_source *source;
        int fd;
        struct text input;
};

struct server {
        sd_event *event;
        sd_event_source *source;
        int fd, port;
        char url[64];
        /* A complete request. NULL: it is left without an answer. */
        void (*on_request)(struct server_connection *connection, const char *request);
        unsigned connections, requests; /* that ever came */
        struct server_connection *last; /* the connection of the last request */
        char request[128 * 1024];       /* the last request as it came, body included */
        struct server_connection *connection[SERVER_CONNECTIONS_MAX]; /* open ones; NULL: free slot */
};

void server_start(struct server *server, sd_event *event);
void server_say(struct server_connection *connection, const char *text);
void server_say_bytes(struct server_connection *connection, const void *bytes, size_t size);
/* A whole answer with Content-Length. `headers`: each with CRLF, or "". */
void server_answer(struct server_connection *connection, const char *status, const char *headers,
                   const char *body);
void server_hang_up(struct server_connection *connection);
void server_stop(struct server *server);
