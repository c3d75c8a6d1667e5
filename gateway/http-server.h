/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The HTTP server: three documents to GET, nothing to send. */
#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "http/http-loop.h"
#include "ipc/message.h"

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

/* What the supervisor has said of the operator (METRICS), and what a client may believe of it now. */
struct report {
        uint64_t deadline_usec; /* what was told longer ago is old */
        bool live, ready;
        char reason[512];
        struct text document, coming; /* whole; and in the making, page by page */
        uint64_t told_monotonic;      /* 0: nothing yet */
};

/* Takes one page. 1: the document is whole, and another one; 0: there is more to come; -EPROTO: it is larger
 * than any. */
int report_take(struct report *report, const struct message_metrics *metrics);
/* Live and ready as a client may believe it now: what is old says that the supervisor is silent. *ret_reason
 * is borrowed until the next report_take(). */
bool report_is_live(const struct report *report, const char **ret_reason);
bool report_is_ready(const struct report *report, const char **ret_reason);
void report_done(struct report *report);

/*
 * Who is connected, and for how long. libmicrohttpd bounds the silence of a connection, not its age: a
 * client that sends a byte now and then would keep its place for ever, and a few hundred of them all places.
 * So a connection has an absolute deadline, and one above the limit takes the place of the oldest one: of
 * its own address first.
 */
#define CONNECTIONS_MAX         512U /* as libmicrohttpd bounds them */
#define CONNECTIONS_TOTAL       480U /* as many stay: there is room for those who come */
#define CONNECTIONS_PER_ADDRESS 64U
#define CONNECTION_AGE_USEC     UINT64_C(10000000)

/* For MHD_OPTION_NOTIFY_CONNECTION. One list a process. */
void connections_notify(void *userdata, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code);
/* Ends those that are too old at `now` (CLOCK_MONOTONIC). Returns when the next one will be; UINT64_MAX:
 * there is none. */
uint64_t connections_expire(uint64_t now);
