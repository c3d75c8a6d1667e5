/* SPDX-License-Identifier: Apache-2.0 */
/* PATCH in all its forms: each comes down to an update, or to a creation. */
#include "devserver/objects/modify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/objects/create.h"
#include "devserver/objects/decode.h"
#include "devserver/objects/update.h"
#include "devserver/objects/validate.h"
#include "devserver/schema/schema-fit.h"
#include "devserver/schema/schema-typed.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/version.h"
#include "devserver/tree/list-rule.h"
#include "devserver/tree/tree-apply.h"
#include "devserver/tree/tree-patch.h"
#include "devserver/tree/tree.h"
#include "http/http-loop.h"
#include "yaml/json-number.h"
#include "yaml/yaml-tree.h"
#include "json/json.h"

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
        const char *type = http_header(request->connection, "Content-Type");

        for (size_t i = 0; type && i < ELEMENTS(table); i++)
                if (strncmp(type, table[i].name, strlen(table[i].name)) == 0)
                        return table[i].type;
        return PATCH_UNKNOWN;
}

static void patch(struct request *request, const char *key, enum patch_type type, const cJSON *body)
{
        const struct version *version = object_find(request->resource, key);
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_free_ char *manager = request_field_manager(request);
        cJSON *live, *object;
        int r = 0;

        if (!version) {
                answer_not_found(request);
                return;
        }
        live = version_parse_as(version, request->resource);
        object = cJSON_Duplicate(live, true);
        if (type != PATCH_JSON) /* which may test it */
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
        } else if (request_body_fits(request, object) && request_decode(request, object)) {
                object_update(request, key, live, object, manager);
        } else {
                cJSON_Delete(object);
        }
        cJSON_Delete(live);
}

/* The fields of each manager, whose conflicts come together, in the order of the managers' names. */
static void describe_conflicts(const cJSON *conflicts, struct text *message)
{
        const char *done = "", *next;

        do {
                const cJSON *conflict;

                next = NULL;
                cJSON_ArrayForEach(conflict, conflicts)
                {
                        const char *manager = json_text(conflict, "manager");

                        if (strcmp(manager, done) > 0 && (!next || strcmp(manager, next) < 0))
                                next = manager;
                }
                if (next)
                        text_printf(message, "%sconflicts with %s:", done[0] ? "\n" : "", next);
                cJSON_ArrayForEach(conflict, conflicts)
                {
                        if (next && strcmp(json_text(conflict, "manager"), next) == 0)
                                text_printf(message, "\n- %s", json_text(conflict, "field"));
                }
                done = next;
        } while (next);
}

static void answer_conflicts(struct request *request, cJSON *conflicts)
{
        cJSON *causes = cJSON_CreateArray(), *conflict;
        _cleanup_text_ struct text message = TEXT_EMPTY;
        int count = cJSON_GetArraySize(conflicts);

        cJSON_ArrayForEach(conflict, conflicts)
        {
                cJSON *cause = cJSON_CreateObject();
                char text[256];

                snprintf(text, sizeof(text), "conflict with %s", json_text(conflict, "manager"));
                cJSON_AddStringToObject(cause, "reason", "FieldManagerConflict");
                cJSON_AddStringToObject(cause, "message", text);
                cJSON_AddStringToObject(cause, "field", json_text(conflict, "field"));
                cJSON_AddItemToArray(causes, cause);
                if (count == 1)
                        text_printf(&message, "Apply failed with 1 conflict: %s: %s", text,
                                    json_text(conflict, "field"));
        }
        if (count > 1) {
                text_printf(&message, "Apply failed with %d conflicts: ", count);
                describe_conflicts(conflicts, &message);
        }
        answer_status_causes(request, 409, "Conflict", causes, message.data);
        cJSON_Delete(conflicts);
}

/* true: answered. An apply may carry the version that it means, and the UID, which then must exist. */
static bool apply_is_stale(struct request *request, const cJSON *config, const cJSON *live)
{
        const char *version = json_text(tree_metadata(config), "resourceVersion");
        const char *uid = json_text(tree_metadata(config), "uid");

        if (!live && uid[0]) {
                answer_status(request, 409, "Conflict",
                              "Operation cannot be fulfilled on %s%s%s \"%s\": uid mismatch: the provided "
                              "object specified uid %s, and no existing object was found",
                              request->plural, request->group[0] ? "." : "", request->group, request->name,
                              uid);
                return true;
        }
        if (!live || !version[0] || strcmp(version, json_text(tree_metadata(live), "resourceVersion")) == 0)
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
        if (!request_is_for_status(request)) {
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

static void apply(struct request *request, const char *key, cJSON *config)
{
        const char *manager = request_argument(request, "fieldManager");
        _cleanup_free_ char *api_version = resource_api_version(request->resource);
        const char *subresource = request_is_for_status(request) ? "status" : "";
        const struct version *version = object_find(request->resource, key);
        _cleanup_free_ char *mistake = NULL;
        cJSON *live, *object, *conflicts = NULL, *body;

        if (!manager || !manager[0]) {
                answer_status(request, 422, "Invalid",
                              "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: "
                              "is required for apply patch");
                return;
        }
        if (cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(tree_metadata(config), "managedFields"))) {
                answer_status(request, 400, "BadRequest", "metadata.managedFields must be nil");
                return;
        }
        schema_complete_keys(config, request->resource->schema);
        mistake = schema_typed_mistake(config, request->resource->schema);
        if (mistake) {
                answer_status(request, 500, "",
                              "failed to create typed patch object (%s/%s; %s, Kind=%s): %s",
                              request->namespace_name, request->name, api_version, request->resource->kind,
                              mistake);
                return;
        }
        body = cJSON_Duplicate(config, true);
        drop_other_half(request, body);
        if (!request_body_fits(request, body) || (!version && request_is_for_status(request))) {
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
                              place_root(request->resource->schema, request->resource->builtin), &conflicts);
        if (object)
                schema_set_defaults(object, request->resource->schema);
        if (!object) {
                answer_conflicts(request, conflicts);
        } else if (!live) {
                if (request_namespace_exists(request))
                        object_create_new(request, object, NULL);
                else
                        cJSON_Delete(object);
        } else {
                if (!cJSON_HasObjectItem(tree_metadata(body), "resourceVersion"))
                        cJSON_DeleteItemFromObjectCaseSensitive(tree_metadata(object), "resourceVersion");
                object_update(request, key, live, object, NULL);
        }
        cJSON_Delete(body);
        cJSON_Delete(live);
}

void object_patch(struct request *request, const char *key)
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
        body = type == PATCH_APPLY ? yaml_parse_object(&request->body)
                                   : number_parse(request->body.data, request->body.size);
        if (!body)
                answer_status(request, 400, "BadRequest", "the patch cannot be decoded");
        else if (type == PATCH_APPLY)
                apply(request, key, body);
        else
                patch(request, key, type, body);
        cJSON_Delete(body);
}
