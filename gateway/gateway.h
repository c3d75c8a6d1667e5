/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The gateway: HTTP for those who watch over the operator. It knows nothing but what the supervisor tells it
 * with each heartbeat (METRICS), holds no credential, opens no connection and starts no program.
 */
#include "gateway/http-server.h"
#include "gateway/report.h"
#include "ipc/child.h"

struct gateway {
        struct child child;
        char *token_file;
        struct report report;
        struct gateway_server server;
        char *socket_path; /* to be removed at the end; NULL for TCP */
};

extern const struct child_operations gateway_operations;
void gateway_done(struct gateway *gateway);
