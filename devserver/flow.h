/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The body of an answer on its way to the client, with faults that act on it: inject, cut, stall, slow down.
 * Its source is a complete answer or a watch. Also holds connections that get no answer at all.
 */
#include "devserver/fault.h"

/* Takes the request's answer or watch. NULL: no memory. */
struct MHD_Response *flow_response(struct request *request);
/* The connection stays open and silent until the client or the server ends it. */
int flow_hang(struct request *request);
void flows_look_for_clients(struct server *server); /* ends those whose client has gone */
/* Breaks or ends what is held open; NULL: all. */
void flows_end(struct server *server);

void flow_hang_done(struct flow *flow); /* its request is over */

/* watch.c, for the flow: as MHD_ContentReaderCallback; 0: the connection was suspended. */
ssize_t watch_read(struct watch *watch, char *out, size_t max);
void watch_free(struct watch *watch);
