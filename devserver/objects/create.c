/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/objects/create.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/objects/crd.h"
#include "devserver/objects/decode.h"
#include "devserver/objects/stored-object.h"
#include "devserver/objects/validate.h"
#include "devserver/storage/served-resource.h"
#include "devserver/tree/list-rule.h"
#include "devserver/tree/tree-apply.h"
#include "devserver/tree/tree.h"
#include "yaml/json-number.h"
#include "json/json.h"

static void generate_name(cJSON *metadata)
{
        static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
        const char *prefix = json_text(metadata, "generateName");
        unsigned char random[5] = {0};
        char name[64];

        if (json_text(metadata, "name")[0] || !prefix[0])
                return;
        if (getrandom(random, sizeof(random), 0) < 0)
                random[0] = 0;
        snprintf(name, sizeof(name), "%.58s%c%c%c%c%c", prefix, letters[random[0] % 27],
                 letters[random[1] % 27], letters[random[2] % 27], letters[random[3] % 27],
                 letters[random[4] % 27]);
        tree_set_text(metadata, "name", name);
}

/* A client cannot create an object with a status where that is a subresource: but for namespaces and nodes.
 */
static bool status_is_reset(const struct resource *resource)
{
        return resource->status_subresource && strcmp(resource->plural, "namespaces") != 0 &&
               strcmp(resource->plural, "nodes") != 0;
}

void object_create_new(struct request *request, cJSON *object, const char *manager)
{
        struct resource *resource = request->resource;
        _cleanup_free_ char *key = NULL, *api_version = resource_api_version(resource);
        const char *name;

        object_fill_new(resource, request->namespace_name, object);
        generate_name(tree_metadata(object));
        name = json_text(tree_metadata(object), "name");
        if (!object_name_is_valid(resource, name)) {
                answer_invalid(
                        request, name, "metadata.name", name[0] ? MISTAKE_INVALID : MISTAKE_REQUIRED, NULL,
                        name[0] ? "a DNS-1123 subdomain is expected" : "name or generateName is required");
                cJSON_Delete(object);
                return;
        }
        if (status_is_reset(resource))
                cJSON_DeleteItemFromObjectCaseSensitive(object, "status");
        if (!request_object_is_valid(request, object, NULL)) {
                cJSON_Delete(object);
                return;
        }
        key = object_key(request->namespace_name, name);
        if (object_find(resource, key)) {
                free(request->name);
                request->name = strdup(name);
                answer_status(request, 409, "AlreadyExists", "%s%s%s \"%s\" already exists", request->plural,
                              request->group[0] ? "." : "", request->group, name);
                cJSON_Delete(object);
                return;
        }
        if (manager)
                manage_update(NULL, object, manager, api_version, "",
                              place_root(resource->schema, resource->builtin));
        if (strcmp(resource->plural, "customresourcedefinitions") == 0)
                crd_add_status(object);
        object_store_and_answer(request, 201, key, object);
}

void object_create(struct request *request)
{
        cJSON *object = number_parse(request->body.data, request->body.size);
        _cleanup_free_ char *manager = request_field_manager(request);

        if (!request_body_fits(request, object) || !request_decode(request, object) ||
            !request_namespace_exists(request)) {
                cJSON_Delete(object);
                return;
        }
        if (json_text(tree_metadata(object), "resourceVersion")[0]) {
                answer_status(request, 400, "BadRequest",
                              "resourceVersion should not be set on objects to be created");
                cJSON_Delete(object);
                return;
        }
        object_create_new(request, object, manager);
}
