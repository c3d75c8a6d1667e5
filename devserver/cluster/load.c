/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests are loaded before the server serves anyone: what they lack is refused, or made up
 * (--load-as-is). */
#include "devserver/cluster/load.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "devserver/cluster/gc.h"
#include "devserver/objects/decode.h"
#include "devserver/objects/stored-object.h"
#include "devserver/objects/validate.h"
#include "devserver/server.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/storage.h"
#include "devserver/storage/version.h"
#include "devserver/tree/tree.h"
#include "yaml/yaml-tree.h"
#include "json/json.h"

/* ---- kinds without a definition */

/* As people would name it: Widget, widgets; Policy, policies; Box, boxes. */
static char *guess_plural(const char *kind)
{
        _cleanup_text_ struct text plural = TEXT_EMPTY;
        size_t size = strlen(kind);
        bool y = size > 1 && kind[size - 1] == 'y' && !strchr("aeiou", kind[size - 2]);
        bool es = size > 0 && (strchr("sx", kind[size - 1]) || strcmp(kind + size - 1, "z") == 0);

        text_append(&plural, kind, y ? size - 1 : size);
        text_append_string(&plural, y ? "ies" : es ? "es" : "s");
        for (char *c = plural.data; c && *c; c++)
                *c = (char)tolower((unsigned char)*c);
        return text_take(&plural);
}

static cJSON *made_up(const char *group, const char *version, const char *kind, const char *plural,
                      bool namespaced)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;

        text_printf(&text,
                    "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
                    "\"metadata\":{\"name\":\"%s.%s\"},\"spec\":{\"group\":\"%s\",\"scope\":\"%s\","
                    "\"names\":{\"plural\":\"%s\",\"kind\":\"%s\"},\"versions\":[{\"name\":\"%s\","
                    "\"served\":true,\"storage\":true,\"subresources\":{\"status\":{}},\"schema\":"
                    "{\"openAPIV3Schema\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":"
                    "true}}}]}}",
                    plural, group, group, namespaced ? "Namespaced" : "Cluster", plural, kind, version);
        return text.failed ? NULL : cJSON_ParseWithLength(text.data, text.size);
}

/* A definition for a kind that has none, made up from one object of it: any content, with a status. NULL: no
 * memory, or nothing that could be a custom resource. */
static struct resource *define(struct server *server, const char *api_version, const char *kind,
                               bool namespaced)
{
        struct resource *definitions =
                resource_find(&server->storage, "apiextensions.k8s.io", "v1", "customresourcedefinitions");
        const char *slash = strchr(api_version, '/');
        _cleanup_free_ char *group = slash ? strndup(api_version, (size_t)(slash - api_version)) : NULL;
        _cleanup_free_ char *plural = guess_plural(kind);
        cJSON *crd = NULL;

        if (definitions && group && plural && !strpbrk(api_version, "\"\\") && !strpbrk(kind, "\"\\"))
                crd = made_up(group, slash + 1, kind, plural, namespaced);
        if (!crd || !object_insert(server, definitions, "", crd)) {
                cJSON_Delete(crd);
                return NULL;
        }
        cJSON_Delete(crd);
        return resource_find_kind(&server->storage, api_version, kind);
}
/* ---- objects */

/* A namespace that each server has, as kube-system, keeps what was loaded for it. */
static bool replaces_builtin(const struct server *server, const struct resource *resource)
{
        return server->load_as_is && resource->builtin && strcmp(resource->plural, "namespaces") == 0;
}

static int check_place(struct server *server, const char *path, const struct resource *resource,
                       const char *namespace_name, const char *name, struct error *error)
{
        struct resource *namespaces = resource_find(&server->storage, "", "v1", "namespaces");
        _cleanup_free_ char *key = object_key(namespace_name, name);

        if (namespace_name[0] && !object_find(namespaces, namespace_name))
                return error_set(
                        error, -EINVAL,
                        "%s: %s \"%s\" is in namespace \"%s\", which does not exist; load that first", path,
                        resource->kind, name, namespace_name);
        if (!key)
                return error_set(error, -ENOMEM, "no memory");
        return object_find(resource, key) && !replaces_builtin(server, resource)
                       ? error_set(error, -EINVAL, "%s: %s \"%s\" is there already", path, resource->kind,
                                   name)
                       : 0;
}

/* What a database has was valid once, and is not judged again. */
static int check_loaded(const char *path, const struct resource *resource, cJSON *object, bool is_stored,
                        struct error *error)
{
        const char *name = json_text(tree_metadata(object), "name");
        char text[400];
        const char *mistake = object_decode(resource, object, text, sizeof(text));
        _cleanup_free_ char *mistakes = mistake || is_stored ? NULL : object_mistake(resource, object);

        if (!mistake)
                mistake = object_name_is_valid(resource, name)
                                  ? mistakes
                                  : "metadata.name: a DNS-1123 subdomain is expected";
        return mistake ? error_set(error, -EINVAL, "%s: %s \"%s\" is invalid: %s", path, resource->kind,
                                   name, mistake)
                       : 0;
}

static int add_namespace(struct server *server, const char *name)
{
        struct resource *namespaces = resource_find(&server->storage, "", "v1", "namespaces");
        cJSON *object;
        bool done;

        if (!namespaces || object_find(namespaces, name))
                return 0;
        object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "apiVersion", "v1");
        cJSON_AddStringToObject(object, "kind", "Namespace");
        cJSON_AddStringToObject(cJSON_AddObjectToObject(object, "metadata"), "name", name);
        done = object_insert(server, namespaces, "", object) != NULL;
        cJSON_Delete(object);
        return done ? 0 : -ENOMEM;
}

static int load_object(struct server *server, const char *path, cJSON *object, bool is_stored,
                       struct error *error)
{
        const char *api_version = json_text(object, "apiVersion"), *kind = json_text(object, "kind");
        const char *name = json_text(tree_metadata(object), "name");
        const char *namespace_name = json_text(tree_metadata(object), "namespace");
        struct resource *resource;
        int r;

        if (!api_version[0] || !kind[0] || !name[0])
                return error_set(error, -EINVAL, "%s: an object lacks apiVersion, kind or metadata.name",
                                 path);
        resource = resource_find_kind(&server->storage, api_version, kind);
        if (!resource && server->load_as_is)
                resource = define(server, api_version, kind, namespace_name[0] != '\0');
        if (!resource)
                return error_set(error, -EINVAL,
                                 "%s: there is no kind %s in %s; load its CustomResourceDefinition first",
                                 path, kind, api_version);
        if (strcmp(kind, "Namespace") == 0 && resource->builtin && object_find(resource, name) &&
            !json_text(tree_metadata(object), "uid")[0])
                return 0;
        if (!resource->namespaced)
                namespace_name = "";
        else if (!namespace_name[0])
                namespace_name = "default";
        r = check_loaded(path, resource, object, is_stored, error);
        if (r >= 0 && server->load_as_is && namespace_name[0])
                r = add_namespace(server, namespace_name);
        if (r >= 0)
                r = check_place(server, path, resource, namespace_name, name, error);
        if (r >= 0 && !object_insert(server, resource, namespace_name, object))
                r = error_set(error, -ENOMEM, "no memory");
        return r;
}

int load_account(struct server *server, const char *account, struct error *error)
{
        const char *slash = strchr(account, '/');
        const struct resource *accounts = resource_find(&server->storage, "", "v1", "serviceaccounts");
        _cleanup_free_ char *namespace_name = slash ? strndup(account, (size_t)(slash - account)) : NULL;
        cJSON *object, *metadata;
        int r;

        if (!namespace_name || !namespace_name[0] || !slash[1])
                return error_set(error, -EINVAL, "--service-account takes NAMESPACE/NAME, not \"%s\"",
                                 account);
        if (accounts && object_find(accounts, account))
                return 0;
        object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "apiVersion", "v1");
        cJSON_AddStringToObject(object, "kind", "ServiceAccount");
        metadata = cJSON_AddObjectToObject(object, "metadata");
        cJSON_AddStringToObject(metadata, "name", slash + 1);
        cJSON_AddStringToObject(metadata, "namespace", namespace_name);
        r = add_namespace(server, namespace_name);
        if (r >= 0)
                r = load_object(server, "--service-account", object, false, error);
        cJSON_Delete(object);
        return r;
}

/* 0: there is none. */
static uint64_t loaded_version(const cJSON *object)
{
        const char *version = json_text(tree_metadata(object), "resourceVersion");

        return version_is_number(version) ? strtoull(version, NULL, 10) : 0;
}

/* A List with a resourceVersion of its own (as a server answers it): its objects keep their versions, and
 * the server goes on from the List's. No watch can begin at an older version. */
static int load_versioned(struct server *server, const char *path, cJSON *items, uint64_t version,
                          struct error *error)
{
        struct storage *storage = &server->storage;
        uint64_t newest = storage->resource_version > version ? storage->resource_version : version;
        cJSON *item;
        int r = 0;

        cJSON_ArrayForEach(item, items)
        {
                if (r < 0)
                        break;
                if (loaded_version(item) > version)
                        return error_set(error, -EINVAL, "%s: an object is newer than its list", path);
                storage->resource_version = loaded_version(item) > 0 ? loaded_version(item) - 1 : newest++;
                r = load_object(server, path, item, true, error);
        }
        storage_compact(storage, UINT64_MAX);
        storage->resource_version = storage->history_lost = newest;
        return r;
}

/* One object, or a List of them. */
static int load_document(struct server *server, const char *path, cJSON *document, struct error *error)
{
        cJSON *items = cJSON_GetObjectItemCaseSensitive(document, "items"), *item;
        int r = 0;

        if (!cJSON_IsArray(items) || strcmp(json_text(document, "kind"), "List") != 0)
                return load_object(server, path, document, false, error);
        if (server->load_as_is && loaded_version(document) > 0)
                return load_versioned(server, path, items, loaded_version(document), error);
        cJSON_ArrayForEach(item, items)
        {
                if (r >= 0)
                        r = load_object(server, path, item, false, error);
        }
        return r;
}

struct file {
        struct server *server;
        const char *path;
};

static int take_document(cJSON *document, void *userdata, struct error *error)
{
        const struct file *file = userdata;

        return load_document(file->server, file->path, document, error);
}

int load_file(struct server *server, const char *path, struct error *error)
{
        int r = yaml_each_document(path, take_document, &(struct file){server, path}, error);

        gc_run(server);
        return r;
}
