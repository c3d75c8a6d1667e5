/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Garbage collection by owner references: what depended on a deleted owner goes with it; what names an owner
 * that does not exist, or lies in another namespace, goes as well, as with the real collector.
 */
#include <string.h>

#include "devserver/tree.h"

static cJSON *owners_of(const cJSON *object)
{
        return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(object, "metadata"),
                                                "ownerReferences");
}

static bool owner_exists(struct server *server, const cJSON *reference, const char *namespace_name)
{
        struct resource *resource = resource_find_kind(&server->storage, tree_text(reference, "apiVersion"),
                                                       tree_text(reference, "kind"));
        _cleanup_free_ char *key = NULL;
        const struct version *version;
        bool same = false;
        cJSON *owner;

        if (!resource)
                return false;
        key = object_key(resource->namespaced ? namespace_name : "", tree_text(reference, "name"));
        version = key ? object_find(resource, key) : NULL;
        if (!version)
                return false;
        owner = version_parse(version);
        same = strcmp(tree_text(cJSON_GetObjectItemCaseSensitive(owner, "metadata"), "uid"),
                      tree_text(reference, "uid")) == 0;
        cJSON_Delete(owner);
        return same;
}

bool gc_owner_is_valid(struct server *server, const cJSON *object, const char *namespace_name)
{
        const cJSON *owners = owners_of(object), *reference;

        if (cJSON_GetArraySize(owners) == 0)
                return true;
        cJSON_ArrayForEach(reference,
                           owners) if (owner_exists(server, reference, namespace_name)) return true;
        return false;
}

void gc_collect_object(struct server *server, struct resource *resource, const struct version *version)
{
        cJSON *object;
        bool valid;

        if (!strstr(version->json, "\"ownerReferences\""))
                return;
        object = version_parse(version);
        valid = gc_owner_is_valid(server, object, version->namespace_name);
        cJSON_Delete(object);
        if (!valid) {
                _cleanup_free_ char *key = strdup(version->key);

                object_request_delete(server, resource, key, false);
        }
}

static void orphan(struct server *server, struct resource *resource, const struct version *version,
                   const char *uid)
{
        cJSON *object = version_parse(version), *owners = owners_of(object);
        _cleanup_free_ char *key = strdup(version->key);

        for (int i = cJSON_GetArraySize(owners) - 1; i >= 0; i--)
                if (strcmp(tree_text(cJSON_GetArrayItem(owners, i), "uid"), uid) == 0)
                        cJSON_DeleteItemFromArray(owners, i);
        object_put(&server->storage, resource, key, object);
        cJSON_Delete(object);
}

void gc_after_delete(struct server *server, const char *owner_uid, bool orphan_dependents)
{
        for (struct resource *resource = server->storage.resource; resource; resource = resource->next)
                for (size_t i = resource->count; i-- > 0;) {
                        if (i >= resource->count)
                                continue;
                        if (!strstr(resource->object[i]->json, "\"ownerReferences\"") ||
                            !strstr(resource->object[i]->json, owner_uid))
                                continue;
                        if (orphan_dependents)
                                orphan(server, resource, resource->object[i], owner_uid);
                        else
                                gc_collect_object(server, resource, resource->object[i]);
                }
}
