/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the real server does when it decodes an object: the schema fills in, takes out, and warns. */
#include <cjson/cJSON.h>
#include <stdbool.h>

#include "devserver/http/http-request.h"
#include "devserver/schema/schema-mistakes.h"

/* false: answered. What the schema does not know is taken out, and reported as fieldValidation wants it. */
bool request_decode(struct request *request, cJSON *object);
/* The same for an object that no request brings. NULL, or why it cannot be decoded, written to `text`. */
const char *object_decode(const struct resource *resource, cJSON *object, char *text, size_t size);
/* What the schemas in a definition, or that of the object's kind, say against it. live: what is there, or NULL.
 * of_status: the status alone is checked. */
void object_check_schema(const struct resource *resource, const cJSON *object, const cJSON *live,
                         bool of_status, struct mistakes *mistakes);
