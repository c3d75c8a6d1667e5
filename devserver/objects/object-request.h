/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "devserver/http/http-request.h"

/* A request to the URL of one object: read, replaced, patched or deleted. */
void object_handle(struct request *request);
