/* SPDX-License-Identifier: Apache-2.0 */
/* What the server maintains of an object that exists: generation, managedFields, what a subresource leaves
 * alone. */
#include "devserver/objects/update.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/cleanup.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/objects/decode.h"
#include "devserver/objects/delete.h"
#include "devserver/objects/stored-object.h"
#include "devserver/objects/validate.h"
#include "devserver/server.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/version.h"
#include "devserver/tree/form.h"
#include "devserver/tree/list-rule.h"
#include "devserver/tree/tree-apply.h"
#include "devserver/tree/tree.h"
#include "yaml/json-number.h"
#include "json/json.h"

/* What the server maintains stays as it is, whatever the client says. */
static void keep_system_fields(cJSON *object, const cJSON *live)
{
        static const char *const kept[] = {
                "uid",  "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds",
                "name", "namespace"};

        for (size_t i = 0; i < ELEMENTS(kept); i++)
                tree_copy_member(tree_metadata(object), tree_metadata(live), kept[i]);
        tree_copy_member(object, live, "apiVersion");
        tree_copy_member(object, live, "kind");
        if (!cJSON_HasObjectItem(tree_metadata(object), "managedFields"))
                tree_copy_member(tree_metadata(object), tree_metadata(live), "managedFields");
        cJSON_DeleteItemFromObjectCaseSensitive(tree_metadata(object), "selfLink");
        tree_drop_empty_metadata(object);
}

/* The main resource ignores status; /status ignores everything else. */
static cJSON *separate_status(const struct request *request, cJSON *object, const cJSON *live)
{
        cJSON *result;

        if (!request->resource->status_subresource)
                return object;
        if (!request_is_for_status(request)) {
                tree_copy_member(object, live, "status");
                return object;
        }
        result = cJSON_Duplicate(live, true);
        tree_copy_member(result, object, "status");
        tree_copy_member(tree_metadata(result), tree_metadata(object), "managedFields");
        cJSON_Delete(object);
        return result;
}

static bool same_but_for(const cJSON *a, const cJSON *b, bool ignore_metadata)
{
        cJSON *x = cJSON_Duplicate(a, true), *y = cJSON_Duplicate(b, true);
        bool same;

        if (ignore_metadata) {
                cJSON_DeleteItemFromObjectCaseSensitive(x, "metadata");
                cJSON_DeleteItemFromObjectCaseSensitive(y, "metadata");
                cJSON_DeleteItemFromObjectCaseSensitive(x, "status");
                cJSON_DeleteItemFromObjectCaseSensitive(y, "status");
        } else {
                cJSON_DeleteItemFromObjectCaseSensitive(tree_metadata(x), "resourceVersion");
                cJSON_DeleteItemFromObjectCaseSensitive(tree_metadata(y), "resourceVersion");
                cJSON_DeleteItemFromObjectCaseSensitive(tree_metadata(x), "managedFields");
                cJSON_DeleteItemFromObjectCaseSensitive(tree_metadata(y), "managedFields");
        }
        same = json_equal(x, y);
        cJSON_Delete(x);
        cJSON_Delete(y);
        return same;
}

static bool same_managers(const cJSON *a, const cJSON *b)
{
        const cJSON *x = cJSON_GetObjectItemCaseSensitive(tree_metadata(a), "managedFields");
        const cJSON *y = cJSON_GetObjectItemCaseSensitive(tree_metadata(b), "managedFields");
        const cJSON *p, *q;

        if (cJSON_GetArraySize(x) != cJSON_GetArraySize(y))
                return false;
        for (p = x ? x->child : NULL, q = y ? y->child : NULL; p && q; p = p->next, q = q->next)
                if (strcmp(json_text(p, "manager"), json_text(q, "manager")) != 0 ||
                    !json_equal(cJSON_GetObjectItemCaseSensitive(p, "fieldsV1"),
                                cJSON_GetObjectItemCaseSensitive(q, "fieldsV1")))
                        return false;
        return true;
}

static bool adds_finalizer(const cJSON *object, const cJSON *live)
{
        const cJSON *old = cJSON_GetObjectItemCaseSensitive(tree_metadata(live), "finalizers"), *item,
                    *other;

        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(tree_metadata(object), "finalizers"))
        {
                bool known = false;

                cJSON_ArrayForEach(other, old) known = known || json_equal(item, other);
                if (!known)
                        return true;
        }
        return false;
}

void object_update(struct request *request, const char *key, const cJSON *live, cJSON *object,
                   const char *manager)
{
        struct server *server = request->server;
        struct resource *resource = request->resource;
        _cleanup_free_ char *api_version = resource_api_version(resource);
        const char *version_given = json_text(tree_metadata(object), "resourceVersion");
        bool deleting = cJSON_HasObjectItem(tree_metadata(live), "deletionTimestamp");

        if (version_given[0] &&
            strcmp(version_given, json_text(tree_metadata(live), "resourceVersion")) != 0) {
                answer_status(request, 409, "Conflict",
                              "Operation cannot be fulfilled on %s%s%s \"%s\": the object has been "
                              "modified; please apply your changes to the latest version and try again",
                              request->plural, request->group[0] ? "." : "", request->group, request->name);
                cJSON_Delete(object);
                return;
        }
        if (request_means_another(request, object, live)) {
                cJSON_Delete(object);
                return;
        }
        if (request->resource->builtin && strcmp(request->plural, "secrets") == 0)
                tree_encode_secret(object);
        keep_system_fields(object, live);
        object = separate_status(request, object, live);
        if (!request_object_is_valid(request, object, live)) {
                cJSON_Delete(object);
                return;
        }
        if (deleting && adds_finalizer(object, live)) {
                answer_invalid(request, request->name, "metadata.finalizers", MISTAKE_FORBIDDEN, NULL,
                               "no new finalizers can be added if the object is being deleted");
                cJSON_Delete(object);
                return;
        }
        if (manager)
                manage_update(live, object, manager, api_version,
                              request_is_for_status(request) ? "status" : "",
                              place_root(resource->schema, resource->builtin));
        tree_copy_member(tree_metadata(object), tree_metadata(live), "resourceVersion");
        if (same_but_for(object, live, false) && same_managers(object, live)) {
                char *json = form_print(live);

                answer_raw(request, 200, json);
                free(json);
                cJSON_Delete(object);
                return;
        }
        if (cJSON_HasObjectItem(tree_metadata(live), "generation") && !same_but_for(object, live, true))
                tree_set_integer(
                        tree_metadata(object), "generation",
                        (int64_t)json_number(
                                cJSON_GetObjectItemCaseSensitive(tree_metadata(live), "generation"), 0) +
                                1);
        if (deleting && !request_is_dry_run(request) && !object_is_held(server, object)) {
                char *json;

                form_arrange(object, resource->builtin);
                json = form_print(object);
                answer_raw(request, 200, json);
                free(json);
                object_finish_delete(server, resource, key, object);
                cJSON_Delete(object);
                return;
        }
        object_store_and_answer(request, 200, key, object);
}

void object_replace(struct request *request, const char *key)
{
        const struct version *version = object_find(request->resource, key);
        cJSON *object = number_parse(request->body.data, request->body.size), *live;
        _cleanup_free_ char *manager = request_field_manager(request);

        if (!request_body_fits(request, object) || !request_decode(request, object)) {
                cJSON_Delete(object);
                return;
        }
        if (!version) {
                answer_not_found(request);
                cJSON_Delete(object);
                return;
        }
        live = version_parse_as(version, request->resource);
        if (!request->resource->builtin && !json_text(tree_metadata(object), "resourceVersion")[0]) {
                answer_invalid(request, request->name, "metadata.resourceVersion", MISTAKE_INVALID, "0x0",
                               "must be specified for an update");
                cJSON_Delete(object);
        } else {
                object_update(request, key, live, object, manager);
        }
        cJSON_Delete(live);
}
