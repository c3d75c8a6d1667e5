/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A libmicrohttpd daemon (started with MHD_USE_EPOLL) as a source of an sd-event loop: in the loop's thread,
 * it runs when one of its sockets is ready, when its timeout ends, and when it is asked to.
 */
#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/* Zeroed: nothing is attached. Its address must not change while a daemon is. */
struct http_loop {
        struct MHD_Daemon *daemon; /* borrowed; NULL if there is none */
        sd_event_source *io, *timer, *soon;
        uint64_t (*expire)(uint64_t now_usec);
};

/* expire: is called before each run with CLOCK_MONOTONIC, and returns when it must be called again at the
 * latest (UINT64_MAX: never); NULL: there is nothing to expire. 0 or a negative errno; after an error
 * http_loop_detach() must be called as well. */
int http_loop_attach(struct http_loop *loop, sd_event *event, struct MHD_Daemon *daemon,
                     uint64_t (*expire)(uint64_t now_usec));
/* The daemon runs in this turn of the loop: a connection was resumed. Nothing happens where none is
 * attached. */
void http_loop_run_soon(struct http_loop *loop);
/* The daemon is the caller's to stop. */
void http_loop_detach(struct http_loop *loop);

/* Questions to libmicrohttpd about one connection. */
/* The connection's socket, which stays libmicrohttpd's; -1: it has none. */
int http_connection_fd(struct MHD_Connection *connection);
/* Whether the client has closed its side. libmicrohttpd does not look at a connection that is suspended. */
bool http_client_has_gone(struct MHD_Connection *connection);
/* The value of a header of the request, borrowed until the request is over; NULL: it was not sent. */
const char *http_header(struct MHD_Connection *connection, const char *name);
