/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Small helpers over an object's tree. Texts that are absent read as "". */
#include "devserver/number.h"
#include "devserver/server.h"

cJSON *tree_metadata(const cJSON *object); /* NULL when there is none */
const char *tree_text(const cJSON *object, const char *name);
void tree_set_text(cJSON *object, const char *name, const char *text);
void tree_set_integer(cJSON *object, const char *name, int64_t value);
void tree_set_time(cJSON *object, const char *name); /* to now, as the API writes times */
void tree_set_uid(cJSON *metadata);                  /* a new one */
bool name_is_valid(const char *name);                /* validate.c */
void tree_encode_secret(cJSON *secret);              /* stringData into data; type Opaque unless given */
/* Without the server's own, which its collector takes away. */
#define FOREGROUND_FINALIZER "foregroundDeletion"
size_t tree_finalizer_count(const cJSON *object);
bool request_is_dry_run(const struct request *request);

/* validate.c: NULL, or what is wrong with the metadata (or the whole CustomResourceDefinition); the text is
 * in `text`. */
const char *object_mistake(const struct resource *resource, const cJSON *object, struct text *text);
/* false: answered with what is wrong. The body must be of the URL's kind, name and namespace. */
bool request_namespace_exists(struct request *request);
bool request_body_fits(struct request *request, cJSON *object);
bool request_object_is_valid(struct request *request, const cJSON *object);
/* true: answered, as the object that is there has another UID than the one that is meant. */
bool request_means_another(struct request *request, const cJSON *object, const cJSON *live);
void answer_invalid(struct request *request, const char *name, const char *field, const char *reason,
                    const char *text);
