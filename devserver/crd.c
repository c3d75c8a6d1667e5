/* SPDX-License-Identifier: Apache-2.0 */
/* CustomResourceDefinitions: each served version becomes a resource. */
#include <string.h>
#include <time.h>

#include "devserver/tree.h"

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
                cJSON_AddItemToArray(stored, cJSON_CreateString(tree_text(version, "name")));
}

static void add_version(struct server *server, const cJSON *spec, const cJSON *version)
{
        const cJSON *names = cJSON_GetObjectItemCaseSensitive(spec, "names");
        const cJSON *subresources = cJSON_GetObjectItemCaseSensitive(version, "subresources");
        bool status = cJSON_HasObjectItem(subresources, "status");
        struct resource *resource = resource_find(&server->storage, tree_text(spec, "group"),
                                                  tree_text(version, "name"), tree_text(names, "plural"));
        const cJSON *short_name =
                cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(names, "shortNames"), 0);

        if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(version, "served"))) {
                if (resource)
                        resource_remove(&server->storage, resource);
                return;
        }
        if (resource) {
                resource->status_subresource = status;
                return;
        }
        resource = resource_add(&server->storage, tree_text(spec, "group"), tree_text(version, "name"),
                                tree_text(names, "kind"), tree_text(names, "plural"),
                                strcmp(tree_text(spec, "scope"), "Cluster") != 0, status, false);
        if (resource && cJSON_IsString(short_name)) {
                free(resource->short_name);
                resource->short_name = strdup(short_name->valuestring);
        }
}

int crd_changed(struct server *server, const cJSON *crd)
{
        const cJSON *spec = cJSON_GetObjectItemCaseSensitive(crd, "spec"), *version;

        cJSON_ArrayForEach(version, cJSON_GetObjectItemCaseSensitive(spec, "versions"))
                add_version(server, spec, version);
        return 0;
}

void crd_deleted(struct server *server, const cJSON *crd)
{
        const cJSON *spec = cJSON_GetObjectItemCaseSensitive(crd, "spec"), *version;
        const char *plural = tree_text(cJSON_GetObjectItemCaseSensitive(spec, "names"), "plural");

        cJSON_ArrayForEach(version, cJSON_GetObjectItemCaseSensitive(spec, "versions"))
        {
                struct resource *resource = resource_find(&server->storage, tree_text(spec, "group"),
                                                          tree_text(version, "name"), plural);

                if (!resource)
                        continue;
                resource_remove(&server->storage, resource);
                watches_end(server, resource);
        }
}
