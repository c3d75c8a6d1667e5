/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* WATCH: connections that are told what changes, for as long as they stay. */
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "devserver/fault/fault.h"
#include "devserver/http/http-request.h"

struct watch;

/* Begins the watch that the request wants (request->watch), or answers why not. */
void watch_handle(struct request *request);
/* The body of its answer; it owns the watch then. NULL: no memory. */
struct MHD_Response *watch_response(struct watch *watch);
/* As MHD_ContentReaderCallback, for the owner of the watch; 0: the connection was suspended. */
ssize_t watch_read(struct watch *watch, char *out, size_t max);
void watch_free(struct watch *watch);

/* For the storage (on_event, on_forget); userdata: the server. */
void watch_on_event(const struct event *event, void *userdata);
void watch_on_forget(const struct event *event, void *userdata);

void watches_end(struct server *server, const struct resource *resource); /* in order; NULL: all */
/* Those whose request matches (NULL: all): the connection breaks, or the stream ends in order. */
void watches_cut(struct server *server, const struct fault_match *match, bool cut);
/* Those whose request matches report nothing new until they are let go (hold: false). */
void watches_hold(struct server *server, const struct fault_match *match, bool hold);
/* Now and then: bookmarks and timeouts; the watches whose client has gone end. */
void watches_tick(struct server *server);
