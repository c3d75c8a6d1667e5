/* SPDX-License-Identifier: Apache-2.0 */
/* CustomResourceDefinitions: each served version becomes a resource. */
#include "devserver/objects/crd.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "devserver/schema/schema-fit.h"
#include "devserver/server.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/storage.h"
#include "devserver/storage/version.h"
#include "devserver/stream/serve-watch.h"
#include "devserver/tree/tree.h"
#include "json/json.h"

static void add_condition(cJSON *conditions, const char *type, const char *reason, const char *message)
{
        cJSON *condition = cJSON_CreateObject();
        time_t now = time(NULL);
        struct tm tm;
        char text[32];

        gmtime_r(&now, &tm);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
        cJSON_AddStringToObject(condition, "type", type);
        cJSON_AddStringToObject(condition, "status", "True");
        cJSON_AddStringToObject(condition, "lastTransitionTime", text);
        cJSON_AddStringToObject(condition, "reason", reason);
        cJSON_AddStringToObject(condition, "message", message);
        cJSON_AddItemToArray(conditions, condition);
}

void crd_add_status(cJSON *crd)
{
        const cJSON *spec = cJSON_GetObjectItemCaseSensitive(crd, "spec"), *version;
        cJSON *status, *conditions, *stored;

        cJSON_DeleteItemFromObjectCaseSensitive(crd, "status");
        status = cJSON_AddObjectToObject(crd, "status");
        conditions = cJSON_AddArrayToObject(status, "conditions");
        add_condition(conditions, "NamesAccepted", "NoConflicts", "no conflicts found");
        add_condition(conditions, "Established", "InitialNamesAccepted",
                      "the initial names have been accepted");
        cJSON_AddItemToObject(status, "acceptedNames",
                              cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(spec, "names"), true));
        stored = cJSON_AddArrayToObject(status, "storedVersions");
        cJSON_ArrayForEach(
                version,
                cJSON_GetObjectItemCaseSensitive(
                        spec,
                        "versions")) if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(version, "storage")))
                cJSON_AddItemToArray(stored, cJSON_CreateString(json_text(version, "name")));
}

/* The resource whose table holds the objects of all versions. */
static struct resource *find_table(struct server *server, const char *group, const char *plural)
{
        for (struct resource *resource = server->storage.resource; resource; resource = resource->next)
                if (!resource->builtin && !resource->dead && resource->table == resource &&
                    strcmp(resource->group, group) == 0 && strcmp(resource->plural, plural) == 0)
                        return resource;
        return NULL;
}

struct resource *crd_table(struct server *server, const char *name)
{
        const char *dot = strchr(name, '.');
        _cleanup_free_ char *plural = dot ? strndup(name, (size_t)(dot - name)) : NULL;

        return plural ? find_table(server, dot + 1, plural) : NULL;
}

/* Also one that is not served for now. */
static struct resource *find_version(struct server *server, const struct resource *table,
                                     const char *version)
{
        for (struct resource *resource = server->storage.resource; resource; resource = resource->next)
                if (table && resource->table == table && strcmp(resource->version, version) == 0)
                        return resource;
        return NULL;
}

static void hide(struct server *server, struct resource *resource)
{
        if (resource->removed)
                return;
        resource->removed = true;
        watches_end(server, resource);
}

/* What is stored is read by the new schema from now on: without a new version, and without events. */
static void fit_objects(struct server *server, struct resource *resource)
{
        struct version **fitted = resource->table == resource && resource->schema
                                          ? calloc(resource->count + 1, sizeof(struct version *))
                                          : NULL;
        size_t count = 0;

        for (size_t i = 0; fitted && i < resource->count; i++) {
                const struct version *old = resource->object[i];
                cJSON *object = version_parse(old);

                schema_fit(object, resource->schema, NULL);
                fitted[i] = version_new(old->key, object, old->resource_version, old->builtin);
                cJSON_Delete(object);
                count += fitted[i] ? 1 : 0;
        }
        if (fitted && count == resource->count)
                (void)storage_replace(&server->storage, resource, fitted, count);
        for (size_t i = 0; fitted && i < resource->count; i++)
                version_unref(fitted[i]);
        free(fitted);
}

/* The storage version comes first, so that the table is its. */
static void add_version(struct server *server, const cJSON *spec, const cJSON *version)
{
        const cJSON *names = cJSON_GetObjectItemCaseSensitive(spec, "names");
        const cJSON *subresources = cJSON_GetObjectItemCaseSensitive(version, "subresources");
        struct resource *table = find_table(server, json_text(spec, "group"), json_text(names, "plural"));
        struct resource *resource = find_version(server, table, json_text(version, "name"));

        if (!resource)
                resource =
                        resource_add(&server->storage, json_text(spec, "group"), json_text(version, "name"),
                                     json_text(names, "kind"), json_text(names, "plural"),
                                     strcmp(json_text(spec, "scope"), "Cluster") != 0, false, false);
        if (!resource)
                return;
        if (table)
                resource->table = table;
        resource->status_subresource = cJSON_HasObjectItem(subresources, "status");
        resource_describe(resource, names,
                          cJSON_GetObjectItemCaseSensitive(version, "additionalPrinterColumns"),
                          cJSON_GetObjectItemCaseSensitive(
                                  cJSON_GetObjectItemCaseSensitive(version, "schema"), "openAPIV3Schema"));
        fit_objects(server, resource);
        if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(version, "served")))
                resource->removed = false;
        else
                hide(server, resource);
}

static bool is_listed(const cJSON *versions, const char *name)
{
        const cJSON *version;

        cJSON_ArrayForEach(version, versions)
        {
                if (strcmp(json_text(version, "name"), name) == 0)
                        return true;
        }
        return false;
}

void crd_changed(struct server *server, const cJSON *crd)
{
        const cJSON *spec = cJSON_GetObjectItemCaseSensitive(crd, "spec"), *version;
        const cJSON *versions = cJSON_GetObjectItemCaseSensitive(spec, "versions");
        const struct resource *table;

        cJSON_ArrayForEach(version, versions)
        {
                if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(version, "storage")))
                        add_version(server, spec, version);
        }
        cJSON_ArrayForEach(version, versions)
        {
                if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(version, "storage")))
                        add_version(server, spec, version);
        }
        table = crd_table(server, json_text(tree_metadata(crd), "name"));
        for (struct resource *resource = server->storage.resource; resource; resource = resource->next)
                if (table && resource->table == table && !is_listed(versions, resource->version))
                        hide(server, resource);
}

void crd_deleted(struct server *server, const cJSON *crd)
{
        const struct resource *table = crd_table(server, json_text(tree_metadata(crd), "name"));

        for (struct resource *resource = server->storage.resource; resource; resource = resource->next)
                if (table && resource->table == table) {
                        hide(server, resource);
                        resource->dead = true;
                }
}
