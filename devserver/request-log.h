/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "devserver/http/http-request.h"

/* Writes the line of a request that is answered, or left without an answer, once. Nothing where no log is
 * kept, and for requests to the server itself. */
void request_log(struct request *request);
