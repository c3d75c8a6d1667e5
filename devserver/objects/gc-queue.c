/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of owners of any length are followed without recursion: entry by entry, by gc_run(). */
#include "devserver/objects/gc-queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "devserver/server.h"
#include "devserver/storage/owners.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/storage.h"
#include "devserver/storage/version.h"
#include "devserver/tree/tree.h"
#include "json/json.h"

void gc_look_later(struct server *server, struct resource *resource, const char *key)
{
        struct gc_queue *list = &server->gc;

        if (list->count == list->allocated) {
                size_t allocated = list->allocated ? list->allocated * 2 : 64;
                struct gc_entry *entry = reallocarray(list->entry, allocated, sizeof(*entry));

                if (!entry)
                        return;
                list->entry = entry;
                list->allocated = allocated;
        }
        list->entry[list->count].resource = resource;
        list->entry[list->count].key = strdup(key);
        if (list->entry[list->count].key)
                list->count++;
}

void gc_look_at_dependents(struct server *server, const char *uid)
{
        const struct owner_reference *reference = NULL;

        while ((reference = owner_index_find(&server->storage.owners, uid, reference)))
                gc_look_later(server, reference->resource, reference->version->key);
}

void gc_look_at_owners(struct server *server, const cJSON *object)
{
        const char *namespace_name = json_text(tree_metadata(object), "namespace");
        const cJSON *reference;

        cJSON_ArrayForEach(reference,
                           cJSON_GetObjectItemCaseSensitive(tree_metadata(object), "ownerReferences"))
        {
                struct resource *resource = resource_find_kind(
                        &server->storage, json_text(reference, "apiVersion"), json_text(reference, "kind"));
                _cleanup_free_ char *key = NULL;

                if (!resource)
                        continue;
                key = object_key(resource->namespaced ? namespace_name : "", json_text(reference, "name"));
                if (key)
                        gc_look_later(server, resource, key);
        }
}

bool gc_is_blocked(const struct server *server, const char *uid)
{
        const struct owner_reference *reference = NULL;

        while ((reference = owner_index_find(&server->storage.owners, uid, reference)))
                if (reference->blocks)
                        return true;
        return false;
}

void gc_done(struct server *server)
{
        for (size_t i = 0; i < server->gc.count; i++)
                free(server->gc.entry[i].key);
        free(server->gc.entry);
        server->gc = (struct gc_queue){0};
}

/* ---- orphans */

static void forget_owner(struct server *server, struct resource *resource, const struct version *version,
                         const char *uid)
{
        cJSON *object = version_parse(version);
        cJSON *list = cJSON_GetObjectItemCaseSensitive(tree_metadata(object), "ownerReferences");

        for (int i = cJSON_GetArraySize(list) - 1; i >= 0; i--)
                if (strcmp(json_text(cJSON_GetArrayItem(list, i), "uid"), uid) == 0)
                        cJSON_DeleteItemFromArray(list, i);
        if (list && !list->child)
                cJSON_DeleteItemFromObjectCaseSensitive(tree_metadata(object), "ownerReferences");
        object_put(&server->storage, resource, version->key, object);
        cJSON_Delete(object);
}

void gc_orphan(struct server *server, const char *uid)
{
        const struct owner_reference *reference;

        while ((reference = owner_index_find(&server->storage.owners, uid, NULL))) {
                struct version *version = version_ref(reference->version);

                forget_owner(server, reference->resource, version, uid);
                version_unref(version);
        }
}
