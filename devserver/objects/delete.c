/* SPDX-License-Identifier: Apache-2.0 */
/* Deletion: preconditions, finalizers, what a namespace held, and what depended on the object. */
#include "devserver/objects/delete.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/objects/crd.h"
#include "devserver/objects/gc-queue.h"
#include "devserver/read/forms.h"
#include "devserver/read/selection.h"
#include "devserver/server.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/storage.h"
#include "devserver/storage/version.h"
#include "devserver/tree/tree.h"
#include "json/json.h"

/* ---- what holds an object */

static bool is_kind(const struct resource *resource, const char *plural)
{
        return resource->builtin && strcmp(resource->plural, plural) == 0;
}

static bool is_namespace(const struct resource *resource)
{
        return is_kind(resource, "namespaces");
}

static bool is_crd(const struct resource *resource)
{
        return is_kind(resource, "customresourcedefinitions");
}

static bool namespace_is_empty(const struct server *server, const char *name)
{
        for (const struct resource *resource = server->storage.resource; resource;
             resource = resource->next) {
                size_t begin, end;

                if (!resource->namespaced || resource->table != resource)
                        continue;
                object_range(resource, name, &begin, &end);
                if (begin < end)
                        return false;
        }
        return true;
}

static bool has_content(struct server *server, const struct resource *resource, const char *key)
{
        const struct resource *table;

        if (is_namespace(resource))
                return !namespace_is_empty(server, key);
        table = is_crd(resource) ? crd_table(server, key) : NULL;
        return table && table->count > 0;
}

bool object_is_held(struct server *server, const cJSON *object)
{
        const struct resource *resource = resource_find_kind(
                &server->storage, json_text(object, "apiVersion"), json_text(object, "kind"));
        const cJSON *metadata = tree_metadata(object);

        if (tree_finalizer_count(object) > 0 ||
            (resource && has_content(server, resource, json_text(metadata, "name"))))
                return true;
        return cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(metadata, "finalizers")) > 0 &&
               gc_is_blocked(server, json_text(metadata, "uid"));
}

/* ---- delete */

/* What waited for its end is looked at when the request is answered. */
static void look_around(struct server *server, struct resource *resource, const cJSON *object)
{
        const char *namespace_name = json_text(tree_metadata(object), "namespace");
        _cleanup_free_ char *crd = NULL;

        gc_look_at_dependents(server, json_text(tree_metadata(object), "uid"));
        gc_look_at_owners(server, object);
        if (namespace_name[0])
                gc_look_later(server, resource_find(&server->storage, "", "v1", "namespaces"),
                              namespace_name);
        if (!resource->builtin && asprintf(&crd, "%s.%s", resource->plural, resource->group) < 0)
                crd = NULL;
        if (crd)
                gc_look_later(server,
                              resource_find(&server->storage, "apiextensions.k8s.io", "v1",
                                            "customresourcedefinitions"),
                              crd);
}

void object_finish_delete(struct server *server, struct resource *resource, const char *key, cJSON *last)
{
        const struct version *version = object_find(resource, key);
        cJSON *object = version ? version_parse(version) : NULL;

        if (!object)
                return;
        if (is_crd(resource))
                crd_deleted(server, object);
        object_remove(&server->storage, resource, key, last);
        look_around(server, resource, object);
        cJSON_Delete(object);
}

void object_finish_if_free(struct server *server, struct resource *resource, const char *key)
{
        const struct version *version = object_find(resource, key);
        cJSON *object;

        if (!version || !version->deleting)
                return;
        object = version_parse(version);
        if (object && !object_is_held(server, object))
                object_finish_delete(server, resource, key, NULL);
        cJSON_Delete(object);
}

static void delete_range(struct server *server, struct resource *resource, const char *namespace_name)
{
        size_t begin, end;

        object_range(resource, namespace_name, &begin, &end);
        while (end > begin) {
                _cleanup_free_ char *key = strdup(resource->object[--end]->key);

                if (key)
                        object_request_delete(server, resource, key, PROPAGATION_BACKGROUND);
        }
}

static void delete_content(struct server *server, struct resource *resource, const char *key)
{
        struct resource *table = is_crd(resource) ? crd_table(server, key) : NULL;

        if (table)
                delete_range(server, table, "");
        if (!is_namespace(resource))
                return;
        for (struct resource *inside = server->storage.resource; inside; inside = inside->next)
                if (inside->namespaced && inside->table == inside)
                        delete_range(server, inside, key);
}

/* The object stays for now, and its deletionTimestamp shows that it is being deleted. */
static void mark_deleted(struct server *server, struct resource *resource, const char *key, cJSON *object)
{
        cJSON *metadata = tree_metadata(object),
              *generation = cJSON_GetObjectItemCaseSensitive(metadata, "generation");
        cJSON *status = cJSON_GetObjectItemCaseSensitive(object, "status");

        tree_set_time(metadata, "deletionTimestamp");
        if (!is_namespace(resource) && !is_crd(resource))
                tree_set_integer(metadata, "deletionGracePeriodSeconds", 0);
        if (generation)
                tree_set_integer(metadata, "generation", (int64_t)json_number(generation, 0) + 1);
        if (is_namespace(resource) && status)
                tree_set_text(status, "phase", "Terminating");
        object_put(&server->storage, resource, key, object);
}

static void add_finalizer(cJSON *metadata, const char *name)
{
        cJSON *finalizers = cJSON_GetObjectItemCaseSensitive(metadata, "finalizers");

        if (!cJSON_IsArray(finalizers)) {
                cJSON_DeleteItemFromObjectCaseSensitive(metadata, "finalizers");
                finalizers = cJSON_AddArrayToObject(metadata, "finalizers");
        }
        cJSON_AddItemToArray(finalizers, cJSON_CreateString(name));
}

/* As the garbage collector does: the object says that its dependents are orphaned until none refers to it. */
static void orphan_dependents(struct server *server, struct resource *resource, const char *key,
                              cJSON *object)
{
        cJSON *finalizers;

        add_finalizer(tree_metadata(object), ORPHAN_FINALIZER);
        mark_deleted(server, resource, key, object);
        gc_orphan(server, json_text(tree_metadata(object), "uid"));
        finalizers = cJSON_GetObjectItemCaseSensitive(tree_metadata(object), "finalizers");
        cJSON_DeleteItemFromArray(finalizers, cJSON_GetArraySize(finalizers) - 1);
        object_put(&server->storage, resource, key, object);
}

void object_request_delete(struct server *server, struct resource *resource, const char *key,
                           enum propagation propagation)
{
        const struct version *version = object_find(resource, key);
        cJSON *object = version ? version_parse(version) : NULL;
        const char *uid = json_text(tree_metadata(object), "uid");

        if (!object)
                return;
        if (propagation == PROPAGATION_ORPHAN && !version->deleting) {
                orphan_dependents(server, resource, key, object);
                version = object_find(resource, key);
        }
        if (propagation == PROPAGATION_FOREGROUND && !version->deleting &&
            (tree_finalizer_count(object) > 0 || gc_is_blocked(server, uid)))
                add_finalizer(tree_metadata(object), FOREGROUND_FINALIZER);
        if (!version->deleting &&
            (cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(tree_metadata(object), "finalizers")) > 0 ||
             has_content(server, resource, key)))
                mark_deleted(server, resource, key, object);
        if (propagation == PROPAGATION_FOREGROUND)
                gc_look_at_dependents(server, uid);
        delete_content(server, resource, key);
        if (!object_is_held(server, object))
                object_finish_delete(server, resource, key, NULL);
        cJSON_Delete(object);
}

/* ---- requests */

static bool preconditions_hold(struct request *request, const cJSON *options, const cJSON *live)
{
        const cJSON *conditions = cJSON_GetObjectItemCaseSensitive(options, "preconditions");
        static const char *const name[] = {"uid", "resourceVersion"};

        for (size_t i = 0; i < ELEMENTS(name); i++) {
                const char *wanted = json_text(conditions, name[i]),
                           *is = json_text(tree_metadata(live), name[i]);

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

/* Reads the propagation from the options in the body, or from the URL. false: answered. */
static bool read_propagation(struct request *request, const cJSON *options, enum propagation *ret)
{
        static const char *const name[] = {
                [PROPAGATION_BACKGROUND] = "Background",
                [PROPAGATION_FOREGROUND] = "Foreground",
                [PROPAGATION_ORPHAN] = "Orphan",
        };
        const char *given = json_text(options, "propagationPolicy");

        if (!given[0])
                given = request_argument(request, "propagationPolicy");
        *ret = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(options, "orphanDependents"))
                       ? PROPAGATION_ORPHAN
                       : PROPAGATION_BACKGROUND;
        if (!given || !given[0])
                return true;
        for (size_t i = 0; i < ELEMENTS(name); i++)
                if (strcmp(given, name[i]) == 0) {
                        *ret = (enum propagation)i;
                        return true;
                }
        answer_status(request, 422, "Invalid",
                      "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: "
                      "\"%s\": supported values: \"Foreground\", \"Background\", \"Orphan\"",
                      given);
        return false;
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
                answer_version(request, 200, now);
                return;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(status, "code");
        cJSON_AddStringToObject(details, "name", request->name);
        if (request->group[0])
                cJSON_AddStringToObject(details, "group", request->group);
        cJSON_AddStringToObject(details, "kind", request->plural);
        cJSON_AddStringToObject(details, "uid", json_text(tree_metadata(live), "uid"));
        cJSON_AddItemToObject(status, "details", details);
        answer_json(request, 200, status);
}

static bool is_dry_run(const struct request *request, const cJSON *options)
{
        return request_is_dry_run(request) ||
               cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(options, "dryRun")) > 0;
}

void object_delete(struct request *request, const char *key)
{
        const struct version *version = object_find(request->resource, key);
        enum propagation propagation;
        cJSON *options, *live;

        if (!version) {
                answer_not_found(request);
                return;
        }
        options = json_parse(request->body.data, request->body.size);
        live = version_parse(version);
        if (read_propagation(request, options, &propagation) && preconditions_hold(request, options, live)) {
                if (!is_dry_run(request, options))
                        object_request_delete(request->server, request->resource, key, propagation);
                answer_deleted(request, live);
        }
        cJSON_Delete(live);
        cJSON_Delete(options);
}

void object_delete_collection(struct request *request)
{
        cJSON *options = json_parse(request->body.data, request->body.size);
        _cleanup_text_ struct text keys = TEXT_EMPTY;
        enum propagation propagation;

        if (read_propagation(request, options, &propagation))
                list_collect_keys(request, &keys);
        for (size_t offset = 0; !request->status && offset < keys.size;
             offset += strlen(keys.data + offset) + 1)
                if (!is_dry_run(request, options))
                        object_request_delete(request->server, request->resource, keys.data + offset,
                                              propagation);
        if (!request->status)
                answer_json(request, 200, status_object(200, "", ""));
        cJSON_Delete(options);
}
