/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* LIST, in pages. */
#include "devserver/http/http-request.h"

void list_handle(struct request *request);
/* Lists whose next page may be asked for: they are gone (410). */
void snapshots_free(struct server *server);
