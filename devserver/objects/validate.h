/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the real server checks of every object, and of a request that writes one. */
#include <cjson/cJSON.h>
#include <stdbool.h>

#include "devserver/http/http-request.h"

/* A DNS-1123 subdomain; roles and their bindings take any segment of a path. */
bool object_name_is_valid(const struct resource *resource, const char *name);
/* NULL, or what is wrong with the metadata, by its schema, or with a whole CustomResourceDefinition; also when there
 * is no memory. The caller's. */
char *object_mistake(const struct resource *resource, const cJSON *object);

/* false: answered with what is wrong. The body must be of the URL's kind, name and namespace. */
bool request_namespace_exists(struct request *request);
bool request_body_fits(struct request *request, cJSON *object);
/* live: what it replaces, or NULL. */
bool request_object_is_valid(struct request *request, const cJSON *object, const cJSON *live);
/* true: answered, as the object that is there has another UID than the one that is meant. */
bool request_means_another(struct request *request, const cJSON *object, const cJSON *live);
