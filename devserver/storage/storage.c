/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/storage/storage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "devserver/storage/owners.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/version.h"

/* ---- life */

int storage_init(struct storage *storage, size_t history_size)
{
        *storage = (struct storage){.history_size = history_size, .resource_version = 1};
        storage->history = calloc(history_size, sizeof(struct event));
        return storage->history ? 0 : -ENOMEM;
}

static void event_clear(struct event *event)
{
        version_unref(event->object);
        version_unref(event->previous);
        *event = (struct event){0};
}

void storage_done(struct storage *storage)
{
        for (size_t i = 0; i < storage->history_count; i++)
                event_clear(&storage->history[(storage->history_first + i) % storage->history_size]);
        free(storage->history);
        owner_index_done(&storage->owners);
        while (storage->resource) {
                struct resource *resource = storage->resource;

                storage->resource = resource->next;
                resource_free(resource);
        }
}

/* ---- resources */

struct resource *resource_add(struct storage *storage, const char *group, const char *version,
                              const char *kind, const char *plural, bool namespaced, bool status_subresource,
                              bool builtin)
{
        struct resource *resource =
                resource_new(group, version, kind, plural, namespaced, status_subresource, builtin);
        struct resource **place = &storage->resource;

        while (*place)
                place = &(*place)->next;
        *place = resource;
        return resource;
}

struct resource *resource_find(struct storage *storage, const char *group, const char *version,
                               const char *plural)
{
        for (struct resource *resource = storage->resource; resource; resource = resource->next)
                if (!resource->removed && strcmp(resource->group, group) == 0 &&
                    strcmp(resource->version, version) == 0 && strcmp(resource->plural, plural) == 0)
                        return resource;
        return NULL;
}

struct resource *resource_find_kind(struct storage *storage, const char *api_version, const char *kind)
{
        for (struct resource *resource = storage->resource; resource; resource = resource->next) {
                _cleanup_free_ char *own = resource_api_version(resource);

                if (!resource->removed && own && strcmp(own, api_version) == 0 &&
                    strcmp(resource->kind, kind) == 0)
                        return resource;
        }
        return NULL;
}

/* ---- objects */

static void forget_oldest(struct storage *storage)
{
        struct event *event = &storage->history[storage->history_first];

        if (storage->on_forget)
                storage->on_forget(event, storage->userdata);
        storage->history_lost = event->resource_version;
        event_clear(event);
        storage->history_first = (storage->history_first + 1) % storage->history_size;
        storage->history_count--;
}

void storage_compact(struct storage *storage, uint64_t version)
{
        while (storage->history_count > 0 &&
               storage->history[storage->history_first].resource_version <= version)
                forget_oldest(storage);
        if (storage->history_lost < version)
                storage->history_lost = version;
}

int storage_replace(struct storage *storage, struct resource *resource, struct version *const *object,
                    size_t count)
{
        struct version **copy = calloc(count ? count : 1, sizeof(*copy));

        if (!copy)
                return -ENOMEM;
        for (size_t i = 0; i < resource->count; i++) {
                owner_index_remove(&storage->owners, resource->object[i]);
                version_unref(resource->object[i]);
        }
        free(resource->object);
        resource->object = copy;
        resource->count = resource->allocated = count;
        for (size_t i = 0; i < count; i++) {
                copy[i] = version_ref(object[i]);
                if (owner_index_add(&storage->owners, resource, copy[i]) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static void record_event(struct storage *storage, enum event_type type, struct resource *resource,
                         struct version *object, struct version *previous)
{
        struct event *event;

        if (storage->history_count == storage->history_size)
                forget_oldest(storage);
        event = &storage->history[(storage->history_first + storage->history_count++) %
                                  storage->history_size];
        storage->resource_version++;
        *event = (struct event){
                .resource_version = storage->resource_version,
                .type = type,
                .resource = resource,
                .object = version_ref(object),
                .previous = version_ref(previous),
        };
        if (storage->on_event)
                storage->on_event(event, storage->userdata);
}

/* Each version is one event, without gaps. */
const struct event *storage_event(const struct storage *storage, uint64_t resource_version)
{
        uint64_t first = storage->resource_version + 1 - storage->history_count;

        if (resource_version < first || resource_version > storage->resource_version)
                return NULL;
        return &storage->history[(storage->history_first + (size_t)(resource_version - first)) %
                                 storage->history_size];
}

static int make_room(struct resource *resource)
{
        size_t allocated = resource->allocated ? resource->allocated * 2 : 64;
        struct version **object;

        if (resource->count < resource->allocated)
                return 0;
        object = reallocarray(resource->object, allocated, sizeof(*object));
        if (!object)
                return -ENOMEM;
        resource->object = object;
        resource->allocated = allocated;
        return 0;
}

struct version *object_put(struct storage *storage, struct resource *resource, const char *key,
                           cJSON *object)
{
        struct version *version, *previous = NULL;
        size_t index;

        resource = resource->table;
        index = object_lower_bound(resource, key);
        /* Objects are kept in the version of their table. */
        if (resource_convert(object, resource) < 0 || make_room(resource) < 0 ||
            version_stamp(object, storage->resource_version + 1) < 0)
                return NULL;
        version = version_new(key, object, storage->resource_version + 1, resource->builtin);
        if (!version || owner_index_add(&storage->owners, resource, version) < 0) {
                version_unref(version);
                return NULL;
        }
        if (object_is_at(resource, index, key)) {
                previous = resource->object[index];
                owner_index_remove(&storage->owners, previous);
        } else {
                memmove(resource->object + index + 1, resource->object + index,
                        (resource->count - index) * sizeof(*resource->object));
                resource->count++;
        }
        resource->object[index] = version;
        record_event(storage, previous ? EVENT_MODIFIED : EVENT_ADDED, resource, version, previous);
        version_unref(previous);
        return version;
}

struct version *object_remove(struct storage *storage, struct resource *resource, const char *key,
                              cJSON *last)
{
        struct version *version, *previous;
        cJSON *object;
        size_t index;

        resource = resource->table;
        index = object_lower_bound(resource, key);
        if (!object_is_at(resource, index, key))
                return NULL;
        previous = resource->object[index];
        object = last ? last : version_parse(previous);
        version = object && resource_convert(object, resource) == 0 &&
                                  version_stamp(object, storage->resource_version + 1) == 0
                          ? version_new(key, object, storage->resource_version + 1, resource->builtin)
                          : NULL;
        if (!last)
                cJSON_Delete(object);
        if (!version)
                return NULL;
        owner_index_remove(&storage->owners, previous);
        memmove(resource->object + index, resource->object + index + 1,
                (resource->count - index - 1) * sizeof(*resource->object));
        resource->count--;
        record_event(storage, EVENT_DELETED, resource, version, previous);
        version_unref(previous);
        version_unref(version); /* the history holds it */
        return version;
}
