/* SPDX-License-Identifier: Apache-2.0 */
/* Where an object is stored, with what the server gives every new one, and what follows from it. */
#include "devserver/objects/stored-object.h"

#include <string.h>

#include "base/cleanup.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/objects/crd.h"
#include "devserver/objects/gc-queue.h"
#include "devserver/read/forms.h"
#include "devserver/schema/schema-fit.h"
#include "devserver/server.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/storage.h"
#include "devserver/storage/version.h"
#include "devserver/tree/form.h"
#include "devserver/tree/tree.h"
#include "json/json.h"

void object_fill_new(struct resource *resource, const char *namespace_name, cJSON *object)
{
        cJSON *metadata = tree_metadata(object);
        _cleanup_free_ char *api_version = resource_api_version(resource);

        if (!metadata)
                metadata = cJSON_AddObjectToObject(object, "metadata");
        tree_set_text(object, "apiVersion", api_version ? api_version : "");
        tree_set_text(object, "kind", resource->kind);
        if (namespace_name[0])
                tree_set_text(metadata, "namespace", namespace_name);
        else
                cJSON_DeleteItemFromObjectCaseSensitive(metadata, "namespace");
        tree_set_uid(metadata);
        tree_set_time(metadata, "creationTimestamp");
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, "deletionTimestamp");
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, "selfLink");
        tree_drop_empty_metadata(object);
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, "generation");
        if (!resource->builtin || cJSON_HasObjectItem(object, "spec"))
                tree_set_integer(metadata, "generation", 1);
        if (resource->status_subresource && !resource->builtin)
                cJSON_DeleteItemFromObjectCaseSensitive(object, "status");
        if (strcmp(resource->plural, "namespaces") == 0 && !cJSON_HasObjectItem(object, "status"))
                cJSON_AddStringToObject(cJSON_AddObjectToObject(object, "status"), "phase", "Active");
        if (resource->builtin && strcmp(resource->plural, "secrets") == 0)
                tree_encode_secret(object);
        if (strcmp(resource->plural, "namespaces") == 0 && !cJSON_HasObjectItem(object, "spec"))
                cJSON_AddItemToArray(
                        cJSON_AddArrayToObject(cJSON_AddObjectToObject(object, "spec"), "finalizers"),
                        cJSON_CreateString("kubernetes"));
}

static void after_write(struct server *server, struct resource *resource, const struct version *version)
{
        cJSON *object;

        if (strcmp(resource->plural, "customresourcedefinitions") == 0) {
                object = version_parse(version);
                crd_changed(server, object);
                cJSON_Delete(object);
        }
        if (version->owner_count > 0)
                gc_look_later(server, resource, version->key);
}

/* What a server decides itself, but an object that was taken from one has already. */
static void keep_as_loaded(const cJSON *object, cJSON *copy)
{
        static const char *const kept[] = {"uid", "creationTimestamp", "deletionTimestamp", "generation"};
        const cJSON *status = cJSON_GetObjectItemCaseSensitive(object, "status");

        for (size_t i = 0; i < ELEMENTS(kept); i++) {
                const cJSON *value = cJSON_GetObjectItemCaseSensitive(tree_metadata(object), kept[i]);

                if (!value || cJSON_IsNull(value))
                        continue;
                cJSON_DeleteItemFromObjectCaseSensitive(tree_metadata(copy), kept[i]);
                cJSON_AddItemToObject(tree_metadata(copy), kept[i], cJSON_Duplicate(value, true));
        }
        if (status && !cJSON_HasObjectItem(copy, "status"))
                cJSON_AddItemToObject(copy, "status", cJSON_Duplicate(status, true));
}

struct version *object_insert(struct server *server, struct resource *resource, const char *namespace_name,
                              cJSON *object)
{
        _cleanup_free_ char *key = NULL;
        cJSON *copy = cJSON_Duplicate(object, true);
        struct version *version;

        object_fill_new(resource, namespace_name, copy);
        if (server->load_as_is)
                keep_as_loaded(object, copy);
        if (resource->schema)
                schema_fit(copy, resource->schema, NULL);
        if (strcmp(resource->plural, "customresourcedefinitions") == 0)
                crd_add_status(copy);
        key = object_key(namespace_name, json_text(tree_metadata(copy), "name"));
        version = key ? object_put(&server->storage, resource, key, copy) : NULL;
        cJSON_Delete(copy);
        if (version)
                after_write(server, resource, version);
        return version;
}

void object_store_and_answer(struct request *request, int status, const char *key, cJSON *object)
{
        struct server *server = request->server;
        const struct version *version;

        if (request->resource->schema) /* as it is read again */
                schema_fit(object, request->resource->schema, NULL);
        if (request_is_dry_run(request)) {
                form_arrange(object, request->resource->builtin);
                answer_json(request, status, object);
                return;
        }
        version = object_put(&server->storage, request->resource, key, object);

        cJSON_Delete(object);
        if (!version) {
                answer_status(request, 500, "InternalError", "no memory");
                return;
        }
        answer_version(request, status, version);
        after_write(server, request->resource, version);
}
