/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to one object: create, read, replace, patch, apply, delete, with everything that the server
 * maintains: UID, creationTimestamp, generation, managedFields, deletionTimestamp, finalizers,
 * preconditions, dryRun.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "devserver/apply.h"
#include "devserver/patch.h"
#include "devserver/server.h"

/* ---- small helpers */

static cJSON *metadata_of(const cJSON *object)
{
        return cJSON_GetObjectItemCaseSensitive(object, "metadata");
}

static const char *text_at(const cJSON *object, const char *name)
{
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

        return text ? text : "";
}

static void set_text(cJSON *object, const char *name, const char *text)
{
        cJSON_DeleteItemFromObjectCaseSensitive(object, name);
        cJSON_AddStringToObject(object, name, text);
}

static void set_time(cJSON *object, const char *name)
{
        time_t now = time(NULL);
        struct tm tm;
        char text[32];

        gmtime_r(&now, &tm);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
        set_text(object, name, text);
}

static void copy_member(cJSON *to, const cJSON *from, const char *name)
{
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(from, name);

        cJSON_DeleteItemFromObjectCaseSensitive(to, name);
        if (value)
                cJSON_AddItemToObject(to, name, cJSON_Duplicate(value, true));
}

static void new_uid(char uid[40])
{
        unsigned char b[16];

        if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
                memset(b, 0, sizeof(b));
        b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
        b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
        snprintf(uid, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
                 b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
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

static bool is_dry_run(const struct request *request)
{
        const char *value = request_argument(request, "dryRun");

        return value && strcmp(value, "All") == 0;
}

static bool is_status_request(const struct request *request)
{
        return request->subresource && strcmp(request->subresource, "status") == 0;
}

static size_t finalizer_count(const cJSON *object)
{
        return (size_t)cJSON_GetArraySize(
                cJSON_GetObjectItemCaseSensitive(metadata_of(object), "finalizers"));
}

/* apiVersion and kind first, metadata third, the rest in the order it has. */
static cJSON *in_order(cJSON *object)
{
        static const char *const first[] = {"apiVersion", "kind", "metadata"};
        cJSON *ordered = cJSON_CreateObject();

        for (size_t i = 0; i < ELEMENTS(first); i++) {
                cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(object, first[i]);

                if (item)
                        cJSON_AddItemToObject(ordered, first[i], item);
        }
        while (object->child) {
                cJSON *item = cJSON_DetachItemViaPointer(object, object->child);

                cJSON_AddItemToArray(ordered, item);
        }
        cJSON_Delete(object);
        return ordered;
}

/* ---- create */

static void fill_new(struct server *server, struct resource *resource, const char *namespace_name,
                     cJSON *object)
{
        cJSON *metadata = metadata_of(object);
        _cleanup_free_ char *api_version = resource_api_version(resource);
        char uid[40];

        if (!metadata)
                metadata = cJSON_AddObjectToObject(object, "metadata");
        set_text(object, "apiVersion", api_version ? api_version : "");
        set_text(object, "kind", resource->kind);
        if (namespace_name[0])
                set_text(metadata, "namespace", namespace_name);
        else
                cJSON_DeleteItemFromObjectCaseSensitive(metadata, "namespace");
        new_uid(uid);
        set_text(metadata, "uid", uid);
        set_time(metadata, "creationTimestamp");
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, "deletionTimestamp");
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, "selfLink");
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, "generation");
        if (!resource->builtin || cJSON_HasObjectItem(object, "spec"))
                cJSON_AddNumberToObject(metadata, "generation", 1);
        if (resource->status_subresource && !resource->builtin)
                cJSON_DeleteItemFromObjectCaseSensitive(object, "status");
        if (strcmp(resource->plural, "namespaces") == 0 && !cJSON_HasObjectItem(object, "status"))
                cJSON_AddStringToObject(cJSON_AddObjectToObject(object, "status"), "phase", "Active");
        (void)server;
}

static void after_write(struct server *server, struct resource *resource, const struct version *version)
{
        cJSON *object;

        if (strcmp(resource->plural, "customresourcedefinitions") == 0) {
                object = version_parse(version);
                crd_changed(server, object);
                cJSON_Delete(object);
        }
        gc_collect_object(server, resource, version);
}

struct version *object_insert(struct server *server, struct resource *resource, const char *namespace_name,
                              cJSON *object)
{
        _cleanup_free_ char *key = NULL;
        cJSON *copy = cJSON_Duplicate(object, true);
        struct version *version;

        fill_new(server, resource, namespace_name, copy);
        if (strcmp(resource->plural, "customresourcedefinitions") == 0)
                crd_add_status(copy);
        copy = in_order(copy);
        key = object_key(namespace_name, text_at(metadata_of(copy), "name"));
        version = key ? object_put(&server->storage, resource, key, copy) : NULL;
        cJSON_Delete(copy);
        if (version)
                after_write(server, resource, version);
        return version;
}

static bool name_is_valid(const char *name)
{
        size_t length = strlen(name);

        if (length == 0 || length > 253)
                return false;
        for (; *name; name++)
                if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-.:", *name))
                        return false;
        return true;
}

static void generate_name(cJSON *metadata)
{
        static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
        const char *prefix = text_at(metadata, "generateName");
        unsigned char random[5] = {0};
        char name[260];

        if (text_at(metadata, "name")[0] || !prefix[0])
                return;
        if (getrandom(random, sizeof(random), 0) < 0)
                random[0] = 0;
        snprintf(name, sizeof(name), "%.250s%c%c%c%c%c", prefix, letters[random[0] % 27],
                 letters[random[1] % 27], letters[random[2] % 27], letters[random[3] % 27],
                 letters[random[4] % 27]);
        set_text(metadata, "name", name);
}

/* false: answered. */
static bool check_namespace(struct request *request)
{
        struct server *server = request->server;
        struct resource *namespaces = resource_find(&server->storage, "", "v1", "namespaces");
        const struct version *version;
        bool ending;
        cJSON *object;

        if (!request->resource->namespaced)
                return true;
        version = object_find(namespaces, request->namespace_name);
        if (!version) {
                answer_status(request, 404, "NotFound", "namespaces \"%s\" not found",
                              request->namespace_name);
                return false;
        }
        object = version_parse(version);
        ending = cJSON_HasObjectItem(metadata_of(object), "deletionTimestamp");
        cJSON_Delete(object);
        if (ending)
                answer_status(request, 403, "Forbidden",
                              "%s \"%s\" is forbidden: unable to create new content in namespace %s "
                              "because it is being terminated",
                              request->plural, request->name ? request->name : "", request->namespace_name);
        return !ending;
}

/* false: answered. The body must be of the URL's kind, name and namespace. */
static bool check_body(struct request *request, cJSON *object)
{
        const struct resource *resource = request->resource;
        _cleanup_free_ char *api_version = resource_api_version(resource);
        cJSON *metadata;

        if (!cJSON_IsObject(object)) {
                answer_status(request, 400, "BadRequest", "the body of the request is no JSON object");
                return false;
        }
        metadata = metadata_of(object);
        if (!cJSON_IsObject(metadata)) {
                cJSON_DeleteItemFromObjectCaseSensitive(object, "metadata");
                metadata = cJSON_AddObjectToObject(object, "metadata");
        }
        if ((text_at(object, "kind")[0] && strcmp(text_at(object, "kind"), resource->kind) != 0) ||
            (text_at(object, "apiVersion")[0] && strcmp(text_at(object, "apiVersion"), api_version) != 0)) {
                answer_status(request, 400, "BadRequest", "%s in version \"%s\" cannot be handled as a %s",
                              text_at(object, "kind"), text_at(object, "apiVersion"), resource->kind);
                return false;
        }
        if (text_at(metadata, "namespace")[0] &&
            strcmp(text_at(metadata, "namespace"), request->namespace_name) != 0) {
                answer_status(request, 400, "BadRequest",
                              "the namespace of the provided object does not match the namespace sent on "
                              "the request");
                return false;
        }
        return true;
}

static void answer_invalid(struct request *request, const char *name, const char *field, const char *text)
{
        _cleanup_free_ char *message = NULL;
        cJSON *causes = cJSON_CreateArray(), *cause = cJSON_CreateObject();

        if (asprintf(&message, "%s%s%s \"%s\" is invalid: %s: %s", request->resource->kind,
                     request->group[0] ? "." : "", request->group, name, field, text) < 0)
                message = NULL;
        cJSON_AddStringToObject(cause, "reason", "FieldValueInvalid");
        cJSON_AddStringToObject(cause, "message", text);
        cJSON_AddStringToObject(cause, "field", field);
        cJSON_AddItemToArray(causes, cause);
        answer_status_causes(request, 422, "Invalid", causes, message ? message : text);
}

/* Creates `object` (taken over) and answers. */
static void create(struct request *request, cJSON *object, const char *manager)
{
        struct server *server = request->server;
        struct resource *resource = request->resource;
        _cleanup_free_ char *key = NULL, *api_version = resource_api_version(resource);
        const char *name;
        struct version *version;

        fill_new(server, resource, request->namespace_name, object);
        generate_name(metadata_of(object));
        name = text_at(metadata_of(object), "name");
        if (!name_is_valid(name)) {
                answer_invalid(request, name, "metadata.name",
                               name[0] ? "Invalid value: a DNS-1123 subdomain is expected"
                                       : "Required value: name or generateName is required");
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
                manage_update(NULL, object, manager, api_version, "");
        if (strcmp(resource->plural, "customresourcedefinitions") == 0)
                crd_add_status(object);
        object = in_order(object);
        if (is_dry_run(request)) {
                answer_json(request, 201, object);
                return;
        }
        version = object_put(&server->storage, resource, key, object);
        cJSON_Delete(object);
        if (!version) {
                answer_status(request, 500, "InternalError", "no memory");
                return;
        }
        answer_raw(request, 201, version->json);
        after_write(server, resource, version);
}

void object_create(struct request *request)
{
        cJSON *object =
                cJSON_ParseWithLength(request->body.data ? request->body.data : "", request->body.size);
        _cleanup_free_ char *manager = field_manager(request);

        if (!check_body(request, object) || !check_namespace(request)) {
                cJSON_Delete(object);
                return;
        }
        if (text_at(metadata_of(object), "resourceVersion")[0]) {
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
                copy_member(metadata_of(object), metadata_of(live), kept[i]);
        copy_member(object, live, "apiVersion");
        copy_member(object, live, "kind");
        if (!cJSON_HasObjectItem(metadata_of(object), "managedFields"))
                copy_member(metadata_of(object), metadata_of(live), "managedFields");
        cJSON_DeleteItemFromObjectCaseSensitive(metadata_of(object), "selfLink");
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
        copy_member(metadata_of(result), metadata_of(object), "managedFields");
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
                cJSON_DeleteItemFromObjectCaseSensitive(metadata_of(x), "resourceVersion");
                cJSON_DeleteItemFromObjectCaseSensitive(metadata_of(y), "resourceVersion");
                cJSON_DeleteItemFromObjectCaseSensitive(metadata_of(x), "managedFields");
                cJSON_DeleteItemFromObjectCaseSensitive(metadata_of(y), "managedFields");
        }
        same = cJSON_Compare(x, y, true);
        cJSON_Delete(x);
        cJSON_Delete(y);
        return same;
}

static bool same_managers(const cJSON *a, const cJSON *b)
{
        const cJSON *x = cJSON_GetObjectItemCaseSensitive(metadata_of(a), "managedFields");
        const cJSON *y = cJSON_GetObjectItemCaseSensitive(metadata_of(b), "managedFields");
        const cJSON *p, *q;

        if (cJSON_GetArraySize(x) != cJSON_GetArraySize(y))
                return false;
        for (p = x ? x->child : NULL, q = y ? y->child : NULL; p && q; p = p->next, q = q->next)
                if (strcmp(text_at(p, "manager"), text_at(q, "manager")) != 0 ||
                    !cJSON_Compare(cJSON_GetObjectItemCaseSensitive(p, "fieldsV1"),
                                   cJSON_GetObjectItemCaseSensitive(q, "fieldsV1"), true))
                        return false;
        return true;
}

static bool adds_finalizer(const cJSON *object, const cJSON *live)
{
        const cJSON *old = cJSON_GetObjectItemCaseSensitive(metadata_of(live), "finalizers"), *item, *other;

        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(metadata_of(object), "finalizers"))
        {
                bool known = false;

                cJSON_ArrayForEach(other, old) known = known || cJSON_Compare(item, other, true);
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
        const char *version_given = text_at(metadata_of(object), "resourceVersion");
        bool deleting = cJSON_HasObjectItem(metadata_of(live), "deletionTimestamp");
        struct version *version;

        if (version_given[0] && strcmp(version_given, text_at(metadata_of(live), "resourceVersion")) != 0) {
                answer_status(request, 409, "Conflict",
                              "Operation cannot be fulfilled on %s%s%s \"%s\": the object has been "
                              "modified; please apply your changes to the latest version and try again",
                              request->plural, request->group[0] ? "." : "", request->group, request->name);
                cJSON_Delete(object);
                return;
        }
        keep_system_fields(object, live);
        object = separate_status(request, object, live);
        if (deleting && adds_finalizer(object, live)) {
                answer_invalid(request, request->name, "metadata.finalizers",
                               "Forbidden: no new finalizers can be added if the object is being deleted");
                cJSON_Delete(object);
                return;
        }
        if (manager)
                manage_update(live, object, manager, api_version,
                              is_status_request(request) ? "status" : "");
        copy_member(metadata_of(object), metadata_of(live), "resourceVersion");
        if (same_but_for(object, live, false) && (manager || same_managers(object, live))) {
                char *json = cJSON_PrintUnformatted(live);

                answer_raw(request, 200, json);
                free(json);
                cJSON_Delete(object);
                return;
        }
        if (cJSON_HasObjectItem(metadata_of(live), "generation") && !same_but_for(object, live, true))
                cJSON_SetNumberValue(
                        cJSON_GetObjectItemCaseSensitive(metadata_of(object), "generation"),
                        cJSON_GetObjectItemCaseSensitive(metadata_of(live), "generation")->valuedouble + 1);
        object = in_order(object);
        if (is_dry_run(request)) {
                answer_json(request, 200, object);
                return;
        }
        if (deleting && finalizer_count(object) == 0) {
                char *json = cJSON_PrintUnformatted(object);

                answer_raw(request, 200, json);
                free(json);
                object_finish_delete(server, resource, key, object);
                cJSON_Delete(object);
                return;
        }
        version = object_put(&server->storage, resource, key, object);
        cJSON_Delete(object);
        if (!version) {
                answer_status(request, 500, "InternalError", "no memory");
                return;
        }
        answer_raw(request, 200, version->json);
        after_write(server, resource, version);
}

static void replace(struct request *request, const char *key)
{
        const struct version *version = object_find(request->resource, key);
        cJSON *object = cJSON_ParseWithLength(request->body.data ? request->body.data : "",
                                              request->body.size),
              *live;
        _cleanup_free_ char *manager = field_manager(request);

        if (!check_body(request, object)) {
                cJSON_Delete(object);
                return;
        }
        if (!version) {
                answer_not_found(request);
                cJSON_Delete(object);
                return;
        }
        live = version_parse(version);
        if (text_at(metadata_of(object), "uid")[0] &&
            strcmp(text_at(metadata_of(object), "uid"), text_at(metadata_of(live), "uid")) != 0) {
                answer_status(request, 409, "Conflict",
                              "Precondition failed: UID in precondition: %s, UID in object meta: %s",
                              text_at(metadata_of(object), "uid"), text_at(metadata_of(live), "uid"));
                cJSON_Delete(object);
        } else if (!request->resource->builtin && !text_at(metadata_of(object), "resourceVersion")[0]) {
                answer_invalid(request, request->name, "metadata.resourceVersion",
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
        live = version_parse(version);
        object = cJSON_Duplicate(live, true);
        cJSON_DeleteItemFromObjectCaseSensitive(metadata_of(object), "resourceVersion");
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
        } else if (check_body(request, object)) {
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

                snprintf(text, sizeof(text), "conflict with \"%s\"", text_at(conflict, "manager"));
                cJSON_AddStringToObject(cause, "reason", "FieldManagerConflict");
                cJSON_AddStringToObject(cause, "message", text);
                cJSON_AddStringToObject(cause, "field", text_at(conflict, "field"));
                cJSON_AddItemToArray(causes, cause);
                text_printf(&message, "%s%s: %s", conflict == conflicts->child ? "" : ", ", text,
                            text_at(conflict, "field"));
        }
        answer_status_causes(request, 409, "Conflict", causes, message.data);
        cJSON_Delete(conflicts);
}

static void apply(struct request *request, const char *key, const cJSON *config)
{
        const char *manager = request_argument(request, "fieldManager");
        _cleanup_free_ char *api_version = resource_api_version(request->resource);
        const char *subresource = is_status_request(request) ? "status" : "";
        const struct version *version = object_find(request->resource, key);
        cJSON *live, *object, *conflicts = NULL, *body;

        if (!manager || !manager[0]) {
                answer_status(request, 400, "BadRequest",
                              "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: "
                              "is required for apply patch");
                return;
        }
        if (cJSON_HasObjectItem(metadata_of(config), "managedFields") &&
            cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(metadata_of(config), "managedFields")) > 0) {
                answer_status(request, 400, "BadRequest", "metadata.managedFields must be nil");
                return;
        }
        body = cJSON_Duplicate(config, true);
        if (!check_body(request, body) || (!version && is_status_request(request))) {
                if (!request->status)
                        answer_not_found(request);
                cJSON_Delete(body);
                return;
        }
        live = version ? version_parse(version) : NULL;
        set_text(metadata_of(body), "name", request->name);
        object = apply_config(live, body, manager, api_version, subresource, request_flag(request, "force"),
                              &conflicts);
        if (!object) {
                answer_conflicts(request, conflicts);
        } else if (!live) {
                if (check_namespace(request))
                        create(request, object, NULL);
                else
                        cJSON_Delete(object);
        } else {
                if (!cJSON_HasObjectItem(metadata_of(body), "resourceVersion"))
                        cJSON_DeleteItemFromObjectCaseSensitive(metadata_of(object), "resourceVersion");
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
                                   : cJSON_ParseWithLength(request->body.data ? request->body.data : "",
                                                           request->body.size);
        if (!body)
                answer_status(request, 400, "BadRequest", "the patch cannot be decoded");
        else if (type == PATCH_APPLY)
                apply(request, key, body);
        else
                patch(request, key, type, body);
        cJSON_Delete(body);
}

/* ---- delete */

void object_finish_delete(struct server *server, struct resource *resource, const char *key, cJSON *last)
{
        const struct version *version = object_find(resource, key);
        cJSON *object = version ? version_parse(version) : NULL;
        _cleanup_free_ char *uid = strdup(text_at(metadata_of(object), "uid"));

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
        _cleanup_free_ char *uid = strdup(text_at(metadata_of(object), "uid"));

        if (!object)
                return;
        if (orphan && uid)
                gc_after_delete(server, uid, true);
        if (finalizer_count(object) == 0) {
                if (strcmp(resource->plural, "namespaces") == 0)
                        empty_namespace(server, key);
                object_finish_delete(server, resource, key, NULL);
        } else if (!cJSON_HasObjectItem(metadata_of(object), "deletionTimestamp")) {
                cJSON *generation = cJSON_GetObjectItemCaseSensitive(metadata_of(object), "generation");

                set_time(metadata_of(object), "deletionTimestamp");
                cJSON_AddNumberToObject(metadata_of(object), "deletionGracePeriodSeconds", 0);
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
                const char *wanted = text_at(conditions, name[i]), *is = text_at(metadata_of(live), name[i]);

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
        const char *policy = text_at(options, "propagationPolicy"),
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
        cJSON_AddStringToObject(details, "uid", text_at(metadata_of(live), "uid"));
        cJSON_AddItemToObject(status, "details", details);
        answer_json(request, 200, status);
}

static void delete_object(struct request *request, const char *key)
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
                if (!is_dry_run(request) && cJSON_GetArraySize(dry_run) == 0)
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
                if (!is_dry_run(request))
                        object_request_delete(server, resource, keys.data + offset, false);
        answer_json(request, 200, status_object(200, "", ""));
}

/* ---- one object's URL */

void object_handle(struct request *request)
{
        _cleanup_free_ char *key = object_key(request->namespace_name, request->name);
        const struct version *version;

        if (strcmp(request->method, "GET") == 0) {
                version = object_find(request->resource, key);
                if (version)
                        answer_raw(request, 200, version->json);
                else
                        answer_not_found(request);
        } else if (strcmp(request->method, "PUT") == 0) {
                replace(request, key);
        } else if (strcmp(request->method, "PATCH") == 0) {
                patch_any(request, key);
        } else if (strcmp(request->method, "DELETE") == 0 && !request->subresource) {
                delete_object(request, key);
        } else {
                answer_status(request, 405, "MethodNotAllowed",
                              "the server does not allow this method on the requested resource");
        }
}
