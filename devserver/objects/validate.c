/* SPDX-License-Identifier: Apache-2.0 */
/* What the real server checks of every object's metadata, and of CustomResourceDefinitions. */
#include "devserver/objects/validate.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/objects/decode.h"
#include "devserver/schema/schema-mistakes.h"
#include "devserver/server.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/storage.h"
#include "devserver/storage/version.h"
#include "devserver/tree/tree.h"
#include "json/json.h"

#define ANNOTATIONS_MAX ((size_t)256 * 1024)

static bool other_mistake(struct mistakes *mistakes, const char *field, enum mistake_type type,
                          const char *text)
{
        mistake_add(mistakes, type, field, NULL, "%s", text);
        return false;
}

static bool invalid(struct mistakes *mistakes, const char *field, const char *value, const char *text)
{
        _cleanup_free_ char *quoted = text_quote(value);

        mistake_add(mistakes, MISTAKE_INVALID, field, quoted, "%s", text);
        return false;
}

/* Lower-case letters, digits, '-' and '.', each part beginning and ending with a letter or digit. */
static bool name_is_valid(const char *name)
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

bool object_name_is_valid(const struct resource *resource, const char *name)
{
        if (strcmp(resource->group, "rbac.authorization.k8s.io") != 0)
                return name_is_valid(name);
        return name[0] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strpbrk(name, "/%");
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

/* [prefix/]name */
static bool label_key_is_valid(const char *key)
{
        const char *slash = strchr(key, '/'), *name = slash ? slash + 1 : key;
        _cleanup_free_ char *prefix = slash ? strndup(key, (size_t)(slash - key)) : NULL;

        return (!slash || (prefix && name_is_valid(prefix))) && name[0] && label_value_is_valid(name);
}

static bool is_map(const cJSON *value)
{
        return !value || cJSON_IsNull(value) || cJSON_IsObject(value);
}

static bool labels_are_valid(const cJSON *metadata, struct mistakes *mistakes)
{
        const cJSON *labels = cJSON_GetObjectItemCaseSensitive(metadata, "labels"), *label;

        if (!is_map(labels))
                return invalid(mistakes, "metadata.labels", "", "must be an object");
        cJSON_ArrayForEach(label, labels)
        {
                if (!cJSON_IsString(label) || !label_value_is_valid(label->valuestring))
                        return invalid(mistakes, "metadata.labels",
                                       cJSON_IsString(label) ? label->valuestring : label->string,
                                       "a valid label must be an empty string or consist of alphanumeric "
                                       "characters, "
                                       "'-', '_' or '.'");
                if (!label_key_is_valid(label->string))
                        return invalid(mistakes, "metadata.labels", label->string,
                                       "name part must consist of alphanumeric characters, '-', '_' or '.'");
        }
        return true;
}

static bool annotations_are_valid(const cJSON *metadata, struct mistakes *mistakes)
{
        const cJSON *annotations = cJSON_GetObjectItemCaseSensitive(metadata, "annotations"), *annotation;
        size_t total = 0;

        if (!is_map(annotations))
                return invalid(mistakes, "metadata.annotations", "", "must be an object");
        cJSON_ArrayForEach(annotation, annotations)
        {
                if (!cJSON_IsString(annotation))
                        return invalid(mistakes, "metadata.annotations", annotation->string,
                                       "must be a string");
                total += strlen(annotation->string) + strlen(annotation->valuestring);
        }
        return total <= ANNOTATIONS_MAX || other_mistake(mistakes, "metadata.annotations", MISTAKE_TOO_LONG,
                                                         "must have at most 262144 bytes");
}

static bool finalizers_are_valid(const cJSON *metadata, struct mistakes *mistakes)
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
                                mistakes, "metadata.finalizers", name,
                                "name is neither a standard finalizer name nor is it fully qualified");
        }
        return true;
}

static bool owners_are_valid(const cJSON *metadata, struct mistakes *mistakes)
{
        const cJSON *owner;
        size_t controllers = 0;

        cJSON_ArrayForEach(owner, cJSON_GetObjectItemCaseSensitive(metadata, "ownerReferences"))
        {
                if (!json_text(owner, "uid")[0] || !json_text(owner, "name")[0] ||
                    !json_text(owner, "kind")[0] || !json_text(owner, "apiVersion")[0])
                        return invalid(mistakes, "metadata.ownerReferences", json_text(owner, "name"),
                                       "apiVersion, kind, name and uid must not be empty");
                controllers += cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(owner, "controller")) ? 1 : 0;
        }
        return controllers <= 1 || invalid(mistakes, "metadata.ownerReferences", "",
                                           "Only one reference can have Controller set to true");
}

static bool crd_is_valid(const cJSON *crd, struct mistakes *mistakes)
{
        const cJSON *spec = cJSON_GetObjectItemCaseSensitive(crd, "spec"), *version;
        const cJSON *names = cJSON_GetObjectItemCaseSensitive(spec, "names");
        char expected[512];
        size_t stored = 0;

        snprintf(expected, sizeof(expected), "%.250s.%.250s", json_text(names, "plural"),
                 json_text(spec, "group"));
        if (strcmp(json_text(tree_metadata(crd), "name"), expected) != 0)
                return invalid(mistakes, "metadata.name", json_text(tree_metadata(crd), "name"),
                               "must be spec.names.plural+\".\"+spec.group");
        if (!json_text(names, "kind")[0])
                return other_mistake(mistakes, "spec.names.kind", MISTAKE_REQUIRED, "");
        if (strcmp(json_text(spec, "scope"), "Namespaced") != 0 &&
            strcmp(json_text(spec, "scope"), "Cluster") != 0)
                return invalid(mistakes, "spec.scope", json_text(spec, "scope"),
                               "supported values: \"Cluster\", \"Namespaced\"");
        cJSON_ArrayForEach(version, cJSON_GetObjectItemCaseSensitive(spec, "versions")) stored +=
                cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(version, "storage")) ? 1 : 0;
        return stored == 1 || invalid(mistakes, "spec.versions", "",
                                      "must have exactly one version marked as storage version");
}

static bool object_is_valid(const cJSON *object, struct mistakes *mistakes)
{
        const cJSON *metadata = tree_metadata(object);

        return labels_are_valid(metadata, mistakes) && annotations_are_valid(metadata, mistakes) &&
               finalizers_are_valid(metadata, mistakes) && owners_are_valid(metadata, mistakes);
}

static bool is_valid(const struct resource *resource, const cJSON *object, const cJSON *live, bool of_status,
                     struct mistakes *mistakes)
{
        if (object_is_valid(object, mistakes) && strcmp(resource->plural, "customresourcedefinitions") == 0)
                (void)crd_is_valid(object, mistakes);
        object_check_schema(resource, object, live, of_status, mistakes);
        return mistakes->count == 0;
}

char *object_mistake(const struct resource *resource, const cJSON *object)
{
        struct mistakes mistakes = {0};
        char *text =
                is_valid(resource, object, NULL, false, &mistakes) ? NULL : mistakes_describe(&mistakes);

        mistakes_done(&mistakes);
        return text;
}

/* ---- whole requests */

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
        if ((json_text(object, "kind")[0] && strcmp(json_text(object, "kind"), resource->kind) != 0) ||
            (json_text(object, "apiVersion")[0] &&
             strcmp(json_text(object, "apiVersion"), api_version) != 0)) {
                answer_status(request, 400, "BadRequest", "%s in version \"%s\" cannot be handled as a %s",
                              json_text(object, "kind"), json_text(object, "apiVersion"), resource->kind);
                return false;
        }
        if (request->name && json_text(metadata, "name")[0] &&
            strcmp(json_text(metadata, "name"), request->name) != 0) {
                answer_status(request, 400, "BadRequest",
                              "the name of the object (%s) does not match the name on the URL (%s)",
                              json_text(metadata, "name"), request->name);
                return false;
        }
        if (json_text(metadata, "namespace")[0] &&
            strcmp(json_text(metadata, "namespace"), request->namespace_name) != 0) {
                answer_status(request, 400, "BadRequest",
                              "the namespace of the provided object does not match the namespace sent on "
                              "the request");
                return false;
        }
        return true;
}

/* A UID in the body is a precondition of PUT, and immutable for PATCH; /status of a custom
 * resource replaces all metadata by what is there before anything is checked. */
bool request_means_another(struct request *request, const cJSON *object, const cJSON *live)
{
        const char *given = json_text(tree_metadata(object), "uid");
        const char *uid = json_text(tree_metadata(live), "uid");
        _cleanup_free_ char *quoted = NULL;

        if (!given[0] || strcmp(given, uid) == 0)
                return false;
        if (strcmp(request->method, "PUT") == 0) {
                answer_status(request, 409, "Conflict",
                              "Precondition failed: UID in precondition: %s, UID in object meta: %s", given,
                              uid);
                return true;
        }
        if (request->subresource && strcmp(request->subresource, "status") == 0 &&
            !request->resource->builtin)
                return false;
        quoted = text_quote(given);
        answer_invalid(request, request->name, "metadata.uid", MISTAKE_INVALID, quoted,
                       "field is immutable");
        return true;
}

bool request_object_is_valid(struct request *request, const cJSON *object, const cJSON *live)
{
        struct mistakes mistakes = {0};
        bool valid = is_valid(request->resource, object, live, request_is_for_status(request), &mistakes);

        if (!valid)
                answer_mistakes(request, json_text(tree_metadata(object), "name"), &mistakes);
        return valid;
}
