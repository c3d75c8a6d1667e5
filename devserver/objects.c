/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to one object: create, read, replace, patch, apply, with everything that the server
 * maintains: UID, creationTimestamp, generation, managedFields, deletionTimestamp, finalizers,
 * preconditions, dryRun.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "devserver/apply.h"
#include "devserver/form.h"
#include "devserver/number.h"
#include "devserver/patch.h"
#include "devserver/table.h"
#include "devserver/tree.h"

/* ---- small helpers */

static void copy_member(cJSON *to, const cJSON *from, const char *name)
{
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(from, name);

        cJSON_DeleteItemFromObjectCaseSensitive(to, name);
        if (value)
                cJSON_AddItemToObject(to, name, cJSON_Duplicate(value, true));
}

/* The default field manager is the client's name: "kubectl" of "kubectl/v1.30 (linux/amd64)". */
static char *field_manager(const struct request *request)
{
        const char *given = request_argument(request, "fieldManager");
        const char *agent = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "User-Agent");

        if (given && given[0])
                return strdup(given);
        return agent && agent[0] ? strndup(agent, strcspn(agent, "/ ")) : strdup("unknown");
}

static struct place place_of(const struct resource *resource)
{
        return place_root(NULL, resource->builtin);
}

static bool is_status_request(const struct request *request)
{
        return request->subresource && strcmp(request->subresource, "status") == 0;
}

/* ---- create */

static void fill_new(struct resource *resource, const char *namespace_name, cJSON *object)
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

        fill_new(resource, namespace_name, copy);
        if (server->load_as_is)
                keep_as_loaded(object, copy);
        if (strcmp(resource->plural, "customresourcedefinitions") == 0)
                crd_add_status(copy);
        key = object_key(namespace_name, tree_text(tree_metadata(copy), "name"));
        version = key ? object_put(&server->storage, resource, key, copy) : NULL;
        cJSON_Delete(copy);
        if (version)
                after_write(server, resource, version);
        return version;
}

static void generate_name(cJSON *metadata)
{
        static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
        const char *prefix = tree_text(metadata, "generateName");
        unsigned char random[5] = {0};
        char name[64];

        if (tree_text(metadata, "name")[0] || !prefix[0])
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

bool object_name_is_valid(const struct resource *resource, const char *name)
{
        if (strcmp(resource->group, "rbac.authorization.k8s.io") != 0)
                return name_is_valid(name);
        return name[0] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strpbrk(name, "/%");
}

/* Takes the object over. */
static void store_and_answer(struct request *request, int status, const char *key, cJSON *object)
{
        struct server *server = request->server;
        const struct version *version = object_put(&server->storage, request->resource, key, object);

        cJSON_Delete(object);
        if (!version) {
                answer_status(request, 500, "InternalError", "no memory");
                return;
        }
        answer_version(request, status, version);
        after_write(server, request->resource, version);
}

/* Creates `object` (taken over) and answers. */
static void create(struct request *request, cJSON *object, const char *manager)
{
        struct resource *resource = request->resource;
        _cleanup_free_ char *key = NULL, *api_version = resource_api_version(resource);
        const char *name;

        fill_new(resource, request->namespace_name, object);
        generate_name(tree_metadata(object));
        name = tree_text(tree_metadata(object), "name");
        if (!object_name_is_valid(resource, name)) {
                answer_invalid(request, name, "metadata.name",
                               name[0] ? "FieldValueInvalid" : "FieldValueRequired",
                               name[0] ? "Invalid value: a DNS-1123 subdomain is expected"
                                       : "Required value: name or generateName is required");
                cJSON_Delete(object);
                return;
        }
        if (!request_object_is_valid(request, object)) {
                cJSON_Delete(object);
                return;
        }
        if (status_is_reset(resource))
                cJSON_DeleteItemFromObjectCaseSensitive(object, "status");
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
                manage_update(NULL, object, manager, api_version, "", place_of(resource));
        if (strcmp(resource->plural, "customresourcedefinitions") == 0)
                crd_add_status(object);
        if (request_is_dry_run(request)) {
                form_arrange(object, resource->builtin);
                answer_json(request, 201, object);
                return;
        }
        store_and_answer(request, 201, key, object);
}

void object_create(struct request *request)
{
        cJSON *object = number_parse(request->body.data, request->body.size);
        _cleanup_free_ char *manager = field_manager(request);

        if (!request_body_fits(request, object) || !request_namespace_exists(request)) {
                cJSON_Delete(object);
                return;
        }
        if (tree_text(tree_metadata(object), "resourceVersion")[0]) {
                answer_status(request, 400, "BadRequest",
                              "resourceVersion should not be set on objects to be created");
                cJSON_Delete(object);
                return;
        }
        create(request, object, manager);
}

/* ---- update */

/* What the server maintains stays as it is, whatever the client says. */
static void keep_system_fields(cJSON *object, const cJSON *live)
{
        static const char *const kept[] = {
                "uid",  "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds",
                "name", "namespace"};

        for (size_t i = 0; i < ELEMENTS(kept); i++)
                copy_member(tree_metadata(object), tree_metadata(live), kept[i]);
        copy_member(object, live, "apiVersion");
        copy_member(object, live, "kind");
        if (!cJSON_HasObjectItem(tree_metadata(object), "managedFields"))
                copy_member(tree_metadata(object), tree_metadata(live), "managedFields");
        cJSON_DeleteItemFromObjectCaseSensitive(tree_metadata(object), "selfLink");
}

/* The main resource ignores status; /status ignores everything else. */
static cJSON *separate_status(const struct request *request, cJSON *object, const cJSON *live)
{
        cJSON *result;

        if (!request->resource->status_subresource)
                return object;
        if (!is_status_request(request)) {
                copy_member(object, live, "status");
                return object;
        }
        result = cJSON_Duplicate(live, true);
        copy_member(result, object, "status");
        copy_member(tree_metadata(result), tree_metadata(object), "managedFields");
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
                if (strcmp(tree_text(p, "manager"), tree_text(q, "manager")) != 0 ||
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

/* Stores the new state of an object that exists (taken over), and answers. */
static void store_update(struct request *request, const char *key, const cJSON *live, cJSON *object,
                         const char *manager)
{
        struct server *server = request->server;
        struct resource *resource = request->resource;
        _cleanup_free_ char *api_version = resource_api_version(resource);
        const char *version_given = tree_text(tree_metadata(object), "resourceVersion");
        bool deleting = cJSON_HasObjectItem(tree_metadata(live), "deletionTimestamp");

        if (version_given[0] &&
            strcmp(version_given, tree_text(tree_metadata(live), "resourceVersion")) != 0) {
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
        if (!request_object_is_valid(request, object)) {
                cJSON_Delete(object);
                return;
        }
        if (request->resource->builtin && strcmp(request->plural, "secrets") == 0)
                tree_encode_secret(object);
        keep_system_fields(object, live);
        object = separate_status(request, object, live);
        if (deleting && adds_finalizer(object, live)) {
                answer_invalid(request, request->name, "metadata.finalizers", "FieldValueForbidden",
                               "Forbidden: no new finalizers can be added if the object is being deleted");
                cJSON_Delete(object);
                return;
        }
        if (manager)
                manage_update(live, object, manager, api_version, is_status_request(request) ? "status" : "",
                              place_of(resource));
        copy_member(tree_metadata(object), tree_metadata(live), "resourceVersion");
        if (same_but_for(object, live, false) && (manager || same_managers(object, live))) {
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
        if (request_is_dry_run(request)) {
                form_arrange(object, resource->builtin);
                answer_json(request, 200, object);
                return;
        }
        if (deleting && !object_is_held(server, object)) {
                char *json;

                form_arrange(object, resource->builtin);
                json = form_print(object);
                answer_raw(request, 200, json);
                free(json);
                object_finish_delete(server, resource, key, object);
                cJSON_Delete(object);
                return;
        }
        store_and_answer(request, 200, key, object);
}

static void replace(struct request *request, const char *key)
{
        const struct version *version = object_find(request->resource, key);
        cJSON *object = number_parse(request->body.data, request->body.size), *live;
        _cleanup_free_ char *manager = field_manager(request);

        if (!request_body_fits(request, object)) {
                cJSON_Delete(object);
                return;
        }
        if (!version) {
                answer_not_found(request);
                cJSON_Delete(object);
                return;
        }
        live = version_parse_as(version, request->resource);
        if (!request->resource->builtin && !tree_text(tree_metadata(object), "resourceVersion")[0]) {
                answer_invalid(request, request->name, "metadata.resourceVersion", "FieldValueInvalid",
                               "Invalid value: 0x0: must be specified for an update");
                cJSON_Delete(object);
        } else {
                store_update(request, key, live, object, manager);
        }
        cJSON_Delete(live);
}

/* ---- patch */

enum patch_type { PATCH_MERGE, PATCH_JSON, PATCH_STRATEGIC, PATCH_APPLY, PATCH_UNKNOWN };

static enum patch_type patch_type(const struct request *request)
{
        static const struct {
                const char *name;
                enum patch_type type;
        } table[] = {
                {"application/merge-patch+json", PATCH_MERGE},
                {"application/json-patch+json", PATCH_JSON},
                {"application/strategic-merge-patch+json", PATCH_STRATEGIC},
                {"application/apply-patch+yaml", PATCH_APPLY},
        };
        const char *type = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Content-Type");

        for (size_t i = 0; type && i < ELEMENTS(table); i++)
                if (strncmp(type, table[i].name, strlen(table[i].name)) == 0)
                        return table[i].type;
        return PATCH_UNKNOWN;
}

static void patch(struct request *request, const char *key, enum patch_type type, const cJSON *body)
{
        const struct version *version = object_find(request->resource, key);
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_free_ char *manager = field_manager(request);
        cJSON *live, *object;
        int r = 0;

        if (!version) {
                answer_not_found(request);
                return;
        }
        live = version_parse_as(version, request->resource);
        object = cJSON_Duplicate(live, true);
        cJSON_DeleteItemFromObjectCaseSensitive(tree_metadata(object), "resourceVersion");
        if (type == PATCH_MERGE)
                object = patch_merge(object, body);
        else if (type == PATCH_STRATEGIC)
                object = patch_strategic(object, body);
        else
                r = patch_json(&object, body, &error);
        if (r < 0) {
                answer_status(request, r == -ECANCELED ? 422 : 400,
                              r == -ECANCELED ? "Invalid" : "BadRequest", "%s", error_message(&error));
                cJSON_Delete(object);
        } else if (request_body_fits(request, object)) {
                store_update(request, key, live, object, manager);
        } else {
                cJSON_Delete(object);
        }
        cJSON_Delete(live);
}

static void answer_conflicts(struct request *request, cJSON *conflicts)
{
        cJSON *causes = cJSON_CreateArray(), *conflict;
        _cleanup_text_ struct text message = TEXT_EMPTY;
        int count = cJSON_GetArraySize(conflicts);

        text_printf(&message, "Apply failed with %d conflict%s: ", count, count == 1 ? "" : "s");
        cJSON_ArrayForEach(conflict, conflicts)
        {
                cJSON *cause = cJSON_CreateObject();
                char text[256];

                snprintf(text, sizeof(text), "conflict with \"%s\"", tree_text(conflict, "manager"));
                cJSON_AddStringToObject(cause, "reason", "FieldManagerConflict");
                cJSON_AddStringToObject(cause, "message", text);
                cJSON_AddStringToObject(cause, "field", tree_text(conflict, "field"));
                cJSON_AddItemToArray(causes, cause);
                text_printf(&message, "%s%s: %s", conflict == conflicts->child ? "" : ", ", text,
                            tree_text(conflict, "field"));
        }
        answer_status_causes(request, 409, "Conflict", causes, message.data);
        cJSON_Delete(conflicts);
}

/* true: answered. An apply may carry the version that it means, and the UID, which then must exist. */
static bool apply_is_stale(struct request *request, const cJSON *config, const cJSON *live)
{
        const char *version = tree_text(tree_metadata(config), "resourceVersion");
        const char *uid = tree_text(tree_metadata(config), "uid");

        if (!live && uid[0]) {
                answer_status(request, 409, "Conflict",
                              "Operation cannot be fulfilled on %s%s%s \"%s\": uid mismatch: the provided "
                              "object specified uid %s, and no existing object was found",
                              request->plural, request->group[0] ? "." : "", request->group, request->name,
                              uid);
                return true;
        }
        if (!live || !version[0] || strcmp(version, tree_text(tree_metadata(live), "resourceVersion")) == 0)
                return live && request_means_another(request, config, live);
        answer_status(request, 409, "Conflict",
                      "Operation cannot be fulfilled on %s \"%s\": the object has been modified; "
                      "please apply your changes to the latest version and try again",
                      request->plural, request->name);
        return true;
}

/* What the main resource does not take, or /status does not, is not owned by whoever sends it along. */
static void drop_other_half(const struct request *request, cJSON *body)
{
        static const char *const kept[] = {"apiVersion", "kind", "metadata", "status"};
        cJSON *member = body ? body->child : NULL;

        if (!request->resource->status_subresource)
                return;
        if (!is_status_request(request)) {
                cJSON_DeleteItemFromObjectCaseSensitive(body, "status");
                return;
        }
        while (member) {
                cJSON *next = member->next;
                bool stays = false;

                for (size_t i = 0; i < ELEMENTS(kept); i++)
                        stays = stays || (member->string && strcmp(member->string, kept[i]) == 0);
                if (!stays)
                        cJSON_Delete(cJSON_DetachItemViaPointer(body, member));
                member = next;
        }
        member = tree_metadata(body);
        cJSON_DeleteItemFromObjectCaseSensitive(member, "labels");
        cJSON_DeleteItemFromObjectCaseSensitive(member, "annotations");
        cJSON_DeleteItemFromObjectCaseSensitive(member, "finalizers");
        cJSON_DeleteItemFromObjectCaseSensitive(member, "ownerReferences");
}

static void apply(struct request *request, const char *key, const cJSON *config)
{
        const char *manager = request_argument(request, "fieldManager");
        _cleanup_free_ char *api_version = resource_api_version(request->resource);
        const char *subresource = is_status_request(request) ? "status" : "";
        const struct version *version = object_find(request->resource, key);
        cJSON *live, *object, *conflicts = NULL, *body;

        if (!manager || !manager[0]) {
                answer_status(request, 422, "Invalid",
                              "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: "
                              "is required for apply patch");
                return;
        }
        if (cJSON_HasObjectItem(tree_metadata(config), "managedFields") &&
            cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(tree_metadata(config), "managedFields")) >
                    0) {
                answer_status(request, 400, "BadRequest", "metadata.managedFields must be nil");
                return;
        }
        body = cJSON_Duplicate(config, true);
        drop_other_half(request, body);
        if (!request_body_fits(request, body) || (!version && is_status_request(request))) {
                if (!request->status)
                        answer_not_found(request);
                cJSON_Delete(body);
                return;
        }
        live = version ? version_parse_as(version, request->resource) : NULL;
        if (apply_is_stale(request, body, live)) {
                cJSON_Delete(body);
                cJSON_Delete(live);
                return;
        }
        tree_set_text(tree_metadata(body), "name", request->name);
        object = apply_config(live, body, manager, api_version, subresource, request_flag(request, "force"),
                              place_of(request->resource), &conflicts);
        if (!object) {
                answer_conflicts(request, conflicts);
        } else if (!live) {
                if (request_namespace_exists(request))
                        create(request, object, NULL);
                else
                        cJSON_Delete(object);
        } else {
                if (!cJSON_HasObjectItem(tree_metadata(body), "resourceVersion"))
                        cJSON_DeleteItemFromObjectCaseSensitive(tree_metadata(object), "resourceVersion");
                store_update(request, key, live, object, NULL);
        }
        cJSON_Delete(body);
        cJSON_Delete(live);
}

static void patch_any(struct request *request, const char *key)
{
        enum patch_type type = patch_type(request);
        cJSON *body;

        if (type == PATCH_UNKNOWN || (type == PATCH_STRATEGIC && !request->resource->builtin)) {
                answer_status(
                        request, 415, "UnsupportedMediaType",
                        "the body of the request was in an unknown format - accepted media types include: "
                        "application/json-patch+json, application/merge-patch+json, "
                        "application/apply-patch+yaml");
                return;
        }
        body = type == PATCH_APPLY ? load_yaml_or_json(&request->body)
                                   : number_parse(request->body.data, request->body.size);
        if (!body)
                answer_status(request, 400, "BadRequest", "the patch cannot be decoded");
        else if (type == PATCH_APPLY)
                apply(request, key, body);
        else
                patch(request, key, type, body);
        cJSON_Delete(body);
}

/* ---- one object's URL */

void object_handle(struct request *request)
{
        _cleanup_free_ char *key = object_key(request->namespace_name, request->name);
        const struct version *version;

        if (strcmp(request->method, "GET") == 0) {
                version = object_find(request->resource, key);
                if (version)
                        answer_version(request, 200, version);
                else
                        answer_not_found(request);
        } else if (strcmp(request->method, "PUT") == 0) {
                replace(request, key);
        } else if (strcmp(request->method, "PATCH") == 0) {
                patch_any(request, key);
        } else if (strcmp(request->method, "DELETE") == 0 && !request->subresource) {
                object_delete(request, key);
        } else {
                answer_status(request, 405, "MethodNotAllowed",
                              "the server does not allow this method on the requested resource");
        }
}
