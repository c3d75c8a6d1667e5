/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/error.h"
#include "devserver/server.h"

/* Makes a new certificate in server->certificate and ->key, signed by server->authority, which is made when
 * there is none or a new one is wanted. 0 or a negative errno. */
int certificate_make(struct server *server, bool new_authority, struct error *error);
/* When this request is answered: a new certificate, by the same or a new authority; connections break. */
void certificate_renew_soon(struct server *server, bool new_authority);
