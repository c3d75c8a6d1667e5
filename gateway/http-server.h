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
        /* The response with the document, for all who ask: plain, OpenMetrics; NULL: not asked for. */
        struct MHD_Response *response[2];
};

/* Serves what `report` says on listen_fd. 0 or a negative errno. */
int gateway_server_start(struct gateway_server *server, sd_event *event, const struct report *report,
                         const char *token_file);
void gateway_server_renew(struct gateway_server *server); /* there is another document */
void gateway_server_stop(struct gateway_server *server);  /* closes listen_fd */

/* The last report of the supervisor (METRICS), and whether a client may still believe it. */
struct report {
        uint64_t deadline_usec; /* an older report is stale */
        bool live, ready;
        char reason[512];
        struct text document, coming; /* whole; and in the making, page by page */
        uint64_t told_monotonic;      /* 0: nothing yet */
};

/* Takes one page. 1 if the document is complete and has changed; 0 if more pages follow; -EPROTO if it is too
 * large. */
int report_take(struct report *report, const struct message_metrics *metrics);
void report_done(struct report *report);
