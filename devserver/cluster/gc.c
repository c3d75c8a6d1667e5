/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Garbage collection by owner references, as by the real collector: what has lost all its owners goes, what
 * has lost some forgets them, and an owner that is deleted in the foreground waits for those that block it.
 *
 * What may have become due waits in a queue (objects/gc-queue.h) and is looked at when the request has its
 * answer.
 */
#include "devserver/cluster/gc.h"

#include <string.h>

#include "base/cleanup.h"
#include "devserver/objects/delete.h"
#include "devserver/objects/gc-queue.h"
#include "devserver/server.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/storage.h"
#include "devserver/storage/version.h"
#include "devserver/tree/tree.h"
#include "json/json.h"

enum owner_state {
        OWNER_SOLID,
        OWNER_ABSENT,  /* or in another namespace, or another object of that name */
        OWNER_WAITING, /* it is being deleted in the foreground, and this reference blocks it */
        OWNER_UNKNOWN, /* a kind that was never served here: nobody can tell */
};

static bool was_served(const struct server *server, const cJSON *reference)
{
        for (const struct resource *resource = server->storage.resource; resource;
             resource = resource->next) {
                _cleanup_free_ char *api_version = resource_api_version(resource);

                if (resource->removed && api_version &&
                    strcmp(api_version, json_text(reference, "apiVersion")) == 0 &&
                    strcmp(resource->kind, json_text(reference, "kind")) == 0)
                        return true;
        }
        return false;
}

static enum owner_state owner_state(struct server *server, const cJSON *reference,
                                    const char *namespace_name)
{
        struct resource *resource = resource_find_kind(&server->storage, json_text(reference, "apiVersion"),
                                                       json_text(reference, "kind"));
        _cleanup_free_ char *key = NULL;
        const struct version *version;

        if (!resource)
                return was_served(server, reference) ? OWNER_ABSENT : OWNER_UNKNOWN;
        key = object_key(resource->namespaced ? namespace_name : "", json_text(reference, "name"));
        version = key ? object_find(resource, key) : NULL;
        if (!version || strcmp(version->uid, json_text(reference, "uid")) != 0)
                return OWNER_ABSENT;
        if (version->deleting && strstr(version->json, FOREGROUND_FINALIZER) &&
            cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reference, "blockOwnerDeletion")))
                return OWNER_WAITING;
        return OWNER_SOLID;
}

/* Takes the references out that hold nothing. The number of those that are left. */
static size_t drop_references(struct server *server, cJSON *object, const char *namespace_name,
                              bool *ret_waiting, bool *ret_dropped)
{
        cJSON *list = cJSON_GetObjectItemCaseSensitive(tree_metadata(object), "ownerReferences");
        cJSON *reference = list ? list->child : NULL;

        while (reference) {
                enum owner_state state = owner_state(server, reference, namespace_name);
                cJSON *next = reference->next;

                *ret_waiting = *ret_waiting || state == OWNER_WAITING;
                if (state == OWNER_ABSENT || state == OWNER_WAITING) {
                        *ret_dropped = true;
                        cJSON_Delete(cJSON_DetachItemViaPointer(list, reference));
                }
                reference = next;
        }
        return (size_t)cJSON_GetArraySize(list);
}

static void check_owners(struct server *server, struct resource *resource, const struct version *version)
{
        bool waiting = false, dropped = false;
        _cleanup_free_ char *key = strdup(version->key), *uid = strdup(version->uid);
        cJSON *object = version_parse(version);
        size_t left = drop_references(server, object, version->namespace_name, &waiting, &dropped);

        if (!key || !uid || !dropped) {
                cJSON_Delete(object);
                return;
        }
        if (left == 0)
                object_request_delete(server, resource, key,
                                      waiting && gc_is_blocked(server, uid) ? PROPAGATION_FOREGROUND
                                                                            : PROPAGATION_BACKGROUND);
        else
                object_put(&server->storage, resource, key, object);
        cJSON_Delete(object);
}

static void look_for_owners(struct server *server, struct resource *resource, const char *key)
{
        const struct version *version = object_find(resource, key);

        if (version && version->owner_count > 0 && !version->deleting)
                check_owners(server, resource, version);
        object_finish_if_free(server, resource, key);
}

void gc_run(struct server *server)
{
        struct gc_queue *list = &server->gc;

        for (size_t i = 0; i < list->count; i++) {
                _cleanup_free_ char *key = list->entry[i].key;

                look_for_owners(server, list->entry[i].resource, key);
        }
        list->count = 0;
}
