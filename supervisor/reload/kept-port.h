/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The gateway's port, kept from the first life of this process on: while it restarts in place nobody else can take it. */
#include <stdbool.h>

#include "config/config.h"

/* Called in the first life, before the process closes itself in; later it may open no such socket. A port
 * that cannot be kept is the gateway's to report. */
void kept_port_begin(const struct config *config);
bool kept_port_is(const char *listen);
