/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The HTTP server: reads requests, has them handled, and sends what they are answered. */
#include <stdint.h>

#include "base/error.h"
#include "devserver/server.h"

/* Listens, and sets server->url. address: IPv4, or "localhost"; port 0: any. 0 or a negative errno with a
 * text. */
int daemon_start(struct server *server, const char *address, uint16_t port, struct error *error);
void daemon_stop(struct server *server); /* watches end in order, what is held open breaks */
