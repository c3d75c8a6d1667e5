/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "devserver/http/http-request.h"

/* PATCH: merge, JSON, strategic merge, apply; as the Content-Type says. Answers. */
void object_patch(struct request *request, const char *key);
