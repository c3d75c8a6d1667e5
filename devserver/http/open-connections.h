/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The connections that there are, so that they can be broken, the idle ones as well. */
#include <microhttpd.h>

#include "devserver/server.h"

/* For MHD_OPTION_NOTIFY_CONNECTION; userdata: the server. */
void connections_note(void *userdata, struct MHD_Connection *connection, void **state,
                      enum MHD_ConnectionNotificationCode code);
/* Breaks all but one. */
void connections_shut(struct server *server, const struct MHD_Connection *except);
