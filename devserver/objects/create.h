/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <cjson/cJSON.h>

#include "devserver/http/http-request.h"

/* Creates the object in the body, and answers. */
void object_create(struct request *request);
/* Creates `object` (taken) and answers. manager: who owns its fields; NULL: managedFields are there. */
void object_create_new(struct request *request, cJSON *object, const char *manager);
