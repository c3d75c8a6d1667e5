/* SPDX-License-Identifier: Apache-2.0 */
/* What the real server checks of every object's metadata, and of CustomResourceDefinitions. */
#include <ctype.h>
#include <string.h>

#include "devserver/tree.h"

#define ANNOTATIONS_MAX ((size_t)256 * 1024)

static const char *invalid(struct text *out, const char *field, const char *value, const char *text)
{
        text_clear(out);
        text_printf(out, "%s: Invalid value: \"%s\": %s", field, value, text);
        return out->data;
}

/* Lower-case letters, digits, '-' and '.', each part beginning and ending with a letter or digit. */
bool name_is_valid(const char *name)
{
        size_t length = strlen(name);
        char before = '.';

        if (length == 0 || length > 253)
                return false;
        for (size_t i = 0; i <= length; i++) {
                char c = i < length ? name[i] : '.';

                if (!islower((unsigned char)c) && !isdigit((unsigned char)c) && c != '-' && c != '.' &&
                    c != ':')
                        return false;
                if ((c == '.' && (before == '.' || before == '-')) || (c == '-' && before == '.'))
                        return false;
                before = c;
        }
        return true;
}

static bool label_value_is_valid(const char *value)
{
        size_t length = strlen(value);

        if (length == 0)
                return true;
        if (length > 63 || !isalnum((unsigned char)value[0]) || !isalnum((unsigned char)value[length - 1]))
                return false;
        for (; *value; value++)
                if (!isalnum((unsigned char)*value) && !strchr("-._", *value))
                        return false;
        return true;
}

static const char *check_labels(const cJSON *metadata, struct text *out)
{
        const cJSON *label;

        cJSON_ArrayForEach(label, cJSON_GetObjectItemCaseSensitive(metadata, "labels")) if (
                !cJSON_IsString(label) ||
                !label_value_is_valid(
                        label->valuestring)) return invalid(out, "metadata.labels",
                                                            cJSON_IsString(label) ? label->valuestring : "",
                                                            "a valid label must be an empty string or "
                                                            "consist of alphanumeric characters, '-', '_' "
                                                            "or '.'");
        return NULL;
}

static const char *check_annotations(const cJSON *metadata, struct text *out)
{
        const cJSON *annotation;
        size_t total = 0;

        cJSON_ArrayForEach(annotation, cJSON_GetObjectItemCaseSensitive(metadata, "annotations")) total +=
                strlen(annotation->string) +
                (cJSON_IsString(annotation) ? strlen(annotation->valuestring) : 0);
        return total > ANNOTATIONS_MAX
                       ? invalid(out, "metadata.annotations", "", "Too long: must have at most 262144 bytes")
                       : NULL;
}

static const char *check_finalizers(const cJSON *metadata, struct text *out)
{
        static const char *const standard[] = {"orphan", "foregroundDeletion", "kubernetes"};
        const cJSON *finalizer;

        cJSON_ArrayForEach(finalizer, cJSON_GetObjectItemCaseSensitive(metadata, "finalizers"))
        {
                const char *name = cJSON_IsString(finalizer) ? finalizer->valuestring : "";
                bool known = strchr(name, '/') != NULL;

                for (size_t i = 0; i < ELEMENTS(standard); i++)
                        known = known || strcmp(name, standard[i]) == 0;
                if (!known)
                        return invalid(
                                out, "metadata.finalizers", name,
                                "name is neither a standard finalizer name nor is it fully qualified");
        }
        return NULL;
}

static const char *check_owners(const cJSON *metadata, struct text *out)
{
        const cJSON *owner;
        size_t controllers = 0;

        cJSON_ArrayForEach(owner, cJSON_GetObjectItemCaseSensitive(metadata, "ownerReferences"))
        {
                if (!tree_text(owner, "uid")[0] || !tree_text(owner, "name")[0] ||
                    !tree_text(owner, "kind")[0] || !tree_text(owner, "apiVersion")[0])
                        return invalid(out, "metadata.ownerReferences", tree_text(owner, "name"),
                                       "apiVersion, kind, name and uid must not be empty");
                controllers += cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(owner, "controller")) ? 1 : 0;
        }
        return controllers > 1 ? invalid(out, "metadata.ownerReferences", "",
                                         "Only one reference can have Controller set to true")
                               : NULL;
}

const char *object_mistake(const cJSON *object, struct text *out)
{
        const cJSON *metadata = tree_metadata(object);
        const char *mistake = check_labels(metadata, out);

        if (!mistake)
                mistake = check_annotations(metadata, out);
        if (!mistake)
                mistake = check_finalizers(metadata, out);
        return mistake ? mistake : check_owners(metadata, out);
}

const char *crd_mistake(const cJSON *crd, struct text *out)
{
        const cJSON *spec = cJSON_GetObjectItemCaseSensitive(crd, "spec");
        const char *plural = tree_text(cJSON_GetObjectItemCaseSensitive(spec, "names"), "plural");
        char expected[512];

        snprintf(expected, sizeof(expected), "%.250s.%.250s", plural, tree_text(spec, "group"));
        if (strcmp(tree_text(tree_metadata(crd), "name"), expected) != 0)
                return invalid(out, "metadata.name", tree_text(tree_metadata(crd), "name"),
                               "must be spec.names.plural+\".\"+spec.group");
        if (cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(spec, "versions")) == 0)
                return invalid(out, "spec.versions", "",
                               "must have exactly one version marked as storage version");
        return NULL;
}

/* ---- whole requests */

/* false: answered. */
bool request_namespace_exists(struct request *request)
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
                free(request->plural);
                free(request->name);
                request->plural = strdup("namespaces");
                request->name = strdup(request->namespace_name);
                request->group[0] = '\0';
                answer_status(request, 404, "NotFound", "namespaces \"%s\" not found",
                              request->namespace_name);
                return false;
        }
        object = version_parse(version);
        ending = cJSON_HasObjectItem(tree_metadata(object), "deletionTimestamp");
        cJSON_Delete(object);
        if (ending)
                answer_status(request, 403, "Forbidden",
                              "%s \"%s\" is forbidden: unable to create new content in namespace %s "
                              "because it is being terminated",
                              request->plural, request->name ? request->name : "", request->namespace_name);
        return !ending;
}

/* false: answered. The body must be of the URL's kind, name and namespace. */
bool request_body_fits(struct request *request, cJSON *object)
{
        const struct resource *resource = request->resource;
        _cleanup_free_ char *api_version = resource_api_version(resource);
        cJSON *metadata;

        if (!cJSON_IsObject(object)) {
                answer_status(request, 400, "BadRequest", "the body of the request is no JSON object");
                return false;
        }
        metadata = tree_metadata(object);
        if (!cJSON_IsObject(metadata)) {
                cJSON_DeleteItemFromObjectCaseSensitive(object, "metadata");
                metadata = cJSON_AddObjectToObject(object, "metadata");
        }
        if ((tree_text(object, "kind")[0] && strcmp(tree_text(object, "kind"), resource->kind) != 0) ||
            (tree_text(object, "apiVersion")[0] &&
             strcmp(tree_text(object, "apiVersion"), api_version) != 0)) {
                answer_status(request, 400, "BadRequest", "%s in version \"%s\" cannot be handled as a %s",
                              tree_text(object, "kind"), tree_text(object, "apiVersion"), resource->kind);
                return false;
        }
        if (request->name && tree_text(metadata, "name")[0] &&
            strcmp(tree_text(metadata, "name"), request->name) != 0) {
                answer_status(request, 400, "BadRequest",
                              "the name of the object (%s) does not match the name on the URL (%s)",
                              tree_text(metadata, "name"), request->name);
                return false;
        }
        if (tree_text(metadata, "namespace")[0] &&
            strcmp(tree_text(metadata, "namespace"), request->namespace_name) != 0) {
                answer_status(request, 400, "BadRequest",
                              "the namespace of the provided object does not match the namespace sent on "
                              "the request");
                return false;
        }
        return true;
}

void answer_invalid(struct request *request, const char *name, const char *field, const char *text)
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

/* false: answered. */
bool request_object_is_valid(struct request *request, const cJSON *object)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;
        const char *mistake = object_mistake(object, &text);

        if (!mistake && strcmp(request->resource->plural, "customresourcedefinitions") == 0)
                mistake = crd_mistake(object, &text);
        if (mistake)
                answer_invalid(request, tree_text(tree_metadata(object), "name"), "metadata", mistake);
        return !mistake;
}
