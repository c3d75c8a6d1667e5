/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <cjson/cJSON.h>

#include "devserver/http/http-request.h"

/* Gives a new object what the server decides: type, namespace, UID, creationTimestamp, generation. */
void object_fill_new(struct resource *resource, const char *namespace_name, cJSON *object);
/* Stores an object (taken) as the newest version, unless this is a dry run, and answers with it. */
void object_store_and_answer(struct request *request, int status, const char *key, cJSON *object);
/* Adds a copy with what the server gives every new object; used by --load and by the server itself as well.
 * Borrowed from the table; NULL: no memory. */
struct version *object_insert(struct server *server, struct resource *resource, const char *namespace_name,
                              cJSON *object);
