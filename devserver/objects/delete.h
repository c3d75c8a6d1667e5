/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Deletion: by a request, by the collector, or when the last finalizer goes. */
#include <cjson/cJSON.h>
#include <stdbool.h>

#include "devserver/http/http-request.h"

/* DELETE of one object or of those that are chosen: answers. */
void object_delete(struct request *request, const char *key);
void object_delete_collection(struct request *request);

enum propagation { PROPAGATION_BACKGROUND, PROPAGATION_FOREGROUND, PROPAGATION_ORPHAN };

/* What a DELETE does, without an answer: removes the object, or marks it, with what is in it and what depends on
 * it. Nothing happens where it is not there. */
void object_request_delete(struct server *server, struct resource *resource, const char *key,
                           enum propagation propagation);
/* Whether an object whose deletion was asked for must stay: finalizers, what blocks it, what is in it. */
bool object_is_held(struct server *server, const cJSON *object);
/* Removes it. `last`: its last state, or NULL for the one that is stored. */
void object_finish_delete(struct server *server, struct resource *resource, const char *key, cJSON *last);
/* Removes it, if its deletion was asked for and nothing holds it any more. */
void object_finish_if_free(struct server *server, struct resource *resource, const char *key);
