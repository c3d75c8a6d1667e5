/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The gateway: HTTP for those who watch over the operator. It knows nothing but what the supervisor tells it
 * with each heartbeat (METRICS), holds no credential, opens no connection and starts no program.
 */
#include <microhttpd.h>

#include "base/error.h"
#include "ipc/child.h"

struct gateway {
        struct child child;
        char *token_file;
        uint64_t deadline_usec;
        /* As last told. */
        bool live, ready;
        char reason[512];
        struct text document, coming; /* whole; and in the making, page by page */
        uint64_t told_monotonic;      /* 0: nothing yet */
        int listen_fd;
        char *socket_path; /* to be removed at the end; NULL for TCP */
        struct MHD_Daemon *daemon;
        struct MHD_Response
                *response[2]; /* of the document, for all who ask: plain, OpenMetrics; NULL: not asked for */
        sd_event_source *http_source, *http_timer;
};

extern const struct child_operations gateway_operations;
void gateway_done(struct gateway *gateway);
/* Live and ready as a client may believe it now: what is old says that the supervisor is silent. */
bool gateway_is_live(const struct gateway *gateway, const char **ret_reason);
bool gateway_is_ready(const struct gateway *gateway, const char **ret_reason);

/* listen.c: a listening socket for "address:port", "[address]:port" or "unix:/path"; the path is the
 * caller's to free. */
int gateway_listen(const char *where, char **ret_socket_path, struct error *error);
/* http.c */
int gateway_http_start(struct gateway *gateway);
void gateway_http_renew(struct gateway *gateway); /* there is another document */
void gateway_http_stop(struct gateway *gateway);
/* token.c: whether this Authorization header (or NULL) carries what the file holds now. */
bool gateway_token_matches(const char *file, const char *authorization);
