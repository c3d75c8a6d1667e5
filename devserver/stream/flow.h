/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The body of an answer on its way to the client, with faults that act on it: inject, cut, stall, slow down.
 * Its source is a complete answer or a watch. Also holds connections that get no answer at all, or a late one.
 */
#include <microhttpd.h>

#include "devserver/http/http-request.h"

struct flow;

/* Takes the request's answer or watch. NULL: no memory. */
struct MHD_Response *flow_response(struct request *request);
/* The connection stays open and silent until the client or the server ends it. 0 or -ENOMEM. */
int flow_hang(struct request *request);
/* The connection is asked for its answer again after this time. 0 or a negative errno. */
int flow_delay(struct request *request, uint64_t usec);
void flow_hang_done(struct flow *flow);             /* its request is over; NULL: it did not hang */
void flows_look_for_clients(struct server *server); /* ends those whose client has gone */
void flows_end(struct server *server);              /* breaks or ends what is held open */
