/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "devserver/http/http-request.h"

/* The one place that every request passes, once its body is there: who asks, what for. It is answered, or
 * begins a watch, or is to be left without an answer (hang, drop). */
void server_handle(struct request *request);
