/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <cjson/cJSON.h>

#include "devserver/http/http-request.h"

/* PUT: the body in the place of the object, or an answer why not. */
void object_replace(struct request *request, const char *key);
/* Stores the new state (taken) of an object that exists, and answers. A resourceVersion and a UID in it are
 * preconditions. manager: who owns what has changed; NULL: managedFields say it. */
void object_update(struct request *request, const char *key, const cJSON *live, cJSON *object,
                   const char *manager);
