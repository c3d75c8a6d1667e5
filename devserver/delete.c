/* SPDX-License-Identifier: Apache-2.0 */
/* Deletion: preconditions, finalizers, what a namespace held, and what depended on the object. */
#include <string.h>
#include <time.h>

#include "devserver/tree.h"

/* ---- delete */

void object_finish_delete(struct server *server, struct resource *resource, const char *key, cJSON *last)
{
        const struct version *version = object_find(resource, key);
        cJSON *object = version ? version_parse(version) : NULL;
        _cleanup_free_ char *uid = strdup(tree_text(tree_metadata(object), "uid"));

        if (!object)
                return;
        if (strcmp(resource->plural, "customresourcedefinitions") == 0)
                crd_deleted(server, object);
        object_remove(&server->storage, resource, key, last);
        cJSON_Delete(object);
        if (uid && uid[0])
                gc_after_delete(server, uid, false);
}

static void empty_namespace(struct server *server, const char *name)
{
        for (struct resource *resource = server->storage.resource; resource; resource = resource->next) {
                size_t length = strlen(name);

                if (!resource->namespaced || resource->removed)
                        continue;
                for (size_t i = resource->count; i-- > 0;) {
                        _cleanup_free_ char *key = strdup(resource->object[i]->key);

                        if (key && strncmp(key, name, length) == 0 && key[length] == '/')
                                object_request_delete(server, resource, key, false);
                        if (i > resource->count)
                                i = resource->count;
                }
        }
}

void object_request_delete(struct server *server, struct resource *resource, const char *key, bool orphan)
{
        const struct version *version = object_find(resource, key);
        cJSON *object = version ? version_parse(version) : NULL;
        _cleanup_free_ char *uid = strdup(tree_text(tree_metadata(object), "uid"));

        if (!object)
                return;
        if (orphan && uid)
                gc_after_delete(server, uid, true);
        if (tree_finalizer_count(object) == 0) {
                if (strcmp(resource->plural, "namespaces") == 0)
                        empty_namespace(server, key);
                object_finish_delete(server, resource, key, NULL);
        } else if (!cJSON_HasObjectItem(tree_metadata(object), "deletionTimestamp")) {
                cJSON *generation = cJSON_GetObjectItemCaseSensitive(tree_metadata(object), "generation");

                tree_set_time(tree_metadata(object), "deletionTimestamp");
                cJSON_AddNumberToObject(tree_metadata(object), "deletionGracePeriodSeconds", 0);
                if (generation)
                        cJSON_SetNumberValue(generation, generation->valuedouble + 1);
                object_put(&server->storage, resource, key, object);
        }
        cJSON_Delete(object);
}

static bool preconditions_hold(struct request *request, const cJSON *options, const cJSON *live)
{
        const cJSON *conditions = cJSON_GetObjectItemCaseSensitive(options, "preconditions");
        static const char *const name[] = {"uid", "resourceVersion"};

        for (size_t i = 0; i < ELEMENTS(name); i++) {
                const char *wanted = tree_text(conditions, name[i]),
                           *is = tree_text(tree_metadata(live), name[i]);

                if (wanted[0] && strcmp(wanted, is) != 0) {
                        answer_status(request, 409, "Conflict",
                                      "Precondition failed: %s in precondition: %s, %s in object meta: %s",
                                      i == 0 ? "UID" : "ResourceVersion", wanted,
                                      i == 0 ? "UID" : "ResourceVersion", is);
                        return false;
                }
        }
        return true;
}

static bool wants_orphans(const struct request *request, const cJSON *options)
{
        const char *policy = tree_text(options, "propagationPolicy"),
                   *given = request_argument(request, "propagationPolicy");

        return strcmp(policy, "Orphan") == 0 || (given && strcmp(given, "Orphan") == 0) ||
               cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(options, "orphanDependents"));
}

static void answer_deleted(struct request *request, const cJSON *live)
{
        cJSON *status = status_object(200, "", ""), *details = cJSON_CreateObject();
        const struct version *now;
        _cleanup_free_ char *key = object_key(request->namespace_name, request->name);

        now = key ? object_find(request->resource, key) : NULL;
        if (now) {
                cJSON_Delete(status);
                cJSON_Delete(details);
                answer_raw(request, 200, now->json);
                return;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(status, "code");
        cJSON_AddStringToObject(details, "name", request->name);
        if (request->group[0])
                cJSON_AddStringToObject(details, "group", request->group);
        cJSON_AddStringToObject(details, "kind", request->plural);
        cJSON_AddStringToObject(details, "uid", tree_text(tree_metadata(live), "uid"));
        cJSON_AddItemToObject(status, "details", details);
        answer_json(request, 200, status);
}

static bool wants_foreground(const struct request *request, const cJSON *options)
{
        const char *given = request_argument(request, "propagationPolicy");

        return strcmp(tree_text(options, "propagationPolicy"), "Foreground") == 0 ||
               (given && strcmp(given, "Foreground") == 0);
}

/* Seen on objects that other finalizers hold as well. */
static void add_foreground_finalizer(struct request *request, const char *key, const cJSON *live)
{
        cJSON *object = cJSON_Duplicate(live, true);

        if (tree_finalizer_count(object) > 0 &&
            !cJSON_HasObjectItem(tree_metadata(object), "deletionTimestamp")) {
                cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(tree_metadata(object), "finalizers"),
                                     cJSON_CreateString(FOREGROUND_FINALIZER));
                object_put(&request->server->storage, request->resource, key, object);
        }
        cJSON_Delete(object);
}

void object_delete(struct request *request, const char *key)
{
        const struct version *version = object_find(request->resource, key);
        cJSON *options = cJSON_ParseWithLength(request->body.data ? request->body.data : "",
                                               request->body.size),
              *live;
        const cJSON *dry_run = cJSON_GetObjectItemCaseSensitive(options, "dryRun");

        if (!version) {
                answer_not_found(request);
                cJSON_Delete(options);
                return;
        }
        live = version_parse(version);
        if (preconditions_hold(request, options, live)) {
                bool is_real = !request_is_dry_run(request) && cJSON_GetArraySize(dry_run) == 0;

                if (is_real && wants_foreground(request, options))
                        add_foreground_finalizer(request, key, live);
                if (is_real)
                        object_request_delete(request->server, request->resource, key,
                                              wants_orphans(request, options));
                answer_deleted(request, live);
        }
        cJSON_Delete(live);
        cJSON_Delete(options);
}

void object_delete_collection(struct request *request)
{
        struct server *server = request->server;
        struct resource *resource = request->resource;
        _cleanup_text_ struct text keys = TEXT_EMPTY;

        list_collect_keys(request, &keys);
        if (request->status)
                return;
        for (size_t offset = 0; offset < keys.size; offset += strlen(keys.data + offset) + 1)
                if (!request_is_dry_run(request))
                        object_request_delete(server, resource, keys.data + offset, false);
        answer_json(request, 200, status_object(200, "", ""));
}
