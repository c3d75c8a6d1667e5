/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/storage.h"

#include <errno.h>
#include <string.h>

#include "devserver/json.h"

/* ---- versions */

struct version *version_ref(struct version *version)
{
        if (version)
                version->references++;
        return version;
}

void version_unref(struct version *version)
{
        if (!version || --version->references > 0)
                return;
        free(version->key);
        free(version->namespace_name);
        free(version->name);
        free(version->json);
        free(version);
}

cJSON *version_parse(const struct version *version)
{
        return json_parse(version->json, version->size);
}

static const char *metadata_text(const cJSON *object, const char *name)
{
        const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, name));

        return text ? text : "";
}

/* apiVersion and kind stand first, so that a list of built-in kinds can leave them out by an offset. */
static size_t bare_offset(const cJSON *object)
{
        const cJSON *first = object->child, *second = first ? first->next : NULL;
        char *a, *b;
        size_t offset;

        if (!second || strcmp(first->string, "apiVersion") != 0 || strcmp(second->string, "kind") != 0)
                return 0;
        a = cJSON_PrintUnformatted(first);
        b = cJSON_PrintUnformatted(second);
        offset = a && b ? strlen("{\"apiVersion\":,\"kind\":,") + strlen(a) + strlen(b) : 0;
        free(a);
        free(b);
        return offset;
}

static struct version *version_new(const char *key, const cJSON *object, uint64_t resource_version)
{
        struct version *version = calloc(1, sizeof(*version));

        if (!version)
                return NULL;
        version->references = 1;
        version->resource_version = resource_version;
        version->key = strdup(key);
        version->namespace_name = strdup(metadata_text(object, "namespace"));
        version->name = strdup(metadata_text(object, "name"));
        version->json = cJSON_PrintUnformatted(object);
        if (!version->key || !version->namespace_name || !version->name || !version->json) {
                version_unref(version);
                return NULL;
        }
        version->size = strlen(version->json);
        version->bare_offset = bare_offset(object);
        return version;
}

/* ---- resources */

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
        while (storage->resource) {
                struct resource *resource = storage->resource;

                storage->resource = resource->next;
                for (size_t i = 0; i < resource->count; i++)
                        version_unref(resource->object[i]);
                free(resource->object);
                free(resource->group);
                free(resource->version);
                free(resource->kind);
                free(resource->list_kind);
                free(resource->plural);
                free(resource->singular);
                free(resource->short_name);
                free(resource);
        }
}

struct resource *resource_add(struct storage *storage, const char *group, const char *version,
                              const char *kind, const char *plural, bool namespaced, bool status_subresource,
                              bool builtin)
{
        struct resource *resource = calloc(1, sizeof(*resource)), **place = &storage->resource;

        if (!resource)
                return NULL;
        resource->group = strdup(group);
        resource->version = strdup(version);
        resource->kind = strdup(kind);
        resource->plural = strdup(plural);
        resource->singular = strdup(kind);
        resource->short_name = strdup("");
        if (asprintf(&resource->list_kind, "%sList", kind) < 0)
                resource->list_kind = NULL;
        for (char *c = resource->singular; c && *c; c++)
                *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
        resource->namespaced = namespaced;
        resource->status_subresource = status_subresource;
        resource->builtin = builtin;
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

char *resource_api_version(const struct resource *resource)
{
        char *text;

        if (asprintf(&text, "%s%s%s", resource->group, resource->group[0] ? "/" : "", resource->version) < 0)
                return NULL;
        return text;
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

void resource_remove(struct storage *storage, struct resource *resource)
{
        while (resource->count > 0) {
                _cleanup_free_ char *key = strdup(resource->object[resource->count - 1]->key);

                object_remove(storage, resource, key, NULL);
        }
        resource->removed = true;
}

/* ---- objects */

char *object_key(const char *namespace_name, const char *name)
{
        char *key;

        if (asprintf(&key, "%s%s%s", namespace_name, namespace_name[0] ? "/" : "", name) < 0)
                return NULL;
        return key;
}

size_t object_lower_bound(const struct resource *resource, const char *key)
{
        size_t low = 0, high = resource->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(resource->object[middle]->key, key) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool is_at(const struct resource *resource, size_t index, const char *key)
{
        return index < resource->count && strcmp(resource->object[index]->key, key) == 0;
}

struct version *object_find(const struct resource *resource, const char *key)
{
        size_t index = object_lower_bound(resource, key);

        return is_at(resource, index, key) ? resource->object[index] : NULL;
}

static void record(struct storage *storage, enum event_type type, struct resource *resource,
                   struct version *object, struct version *previous)
{
        size_t slot = (storage->history_first + storage->history_count) % storage->history_size;
        struct event *event = &storage->history[slot];

        if (storage->history_count == storage->history_size) {
                storage->history_lost = event->resource_version;
                event_clear(event);
                storage->history_first = (storage->history_first + 1) % storage->history_size;
        } else {
                storage->history_count++;
        }
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

static int set_resource_version(cJSON *object, uint64_t resource_version)
{
        cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        char text[24];

        snprintf(text, sizeof(text), "%llu", (unsigned long long)resource_version);
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, "resourceVersion");
        return cJSON_AddStringToObject(metadata, "resourceVersion", text) ? 0 : -ENOMEM;
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
        size_t index = object_lower_bound(resource, key);
        struct version *version, *previous = NULL;

        if (make_room(resource) < 0 || set_resource_version(object, storage->resource_version + 1) < 0)
                return NULL;
        version = version_new(key, object, storage->resource_version + 1);
        if (!version)
                return NULL;
        storage->resource_version++;
        if (is_at(resource, index, key)) {
                previous = resource->object[index];
        } else {
                memmove(resource->object + index + 1, resource->object + index,
                        (resource->count - index) * sizeof(*resource->object));
                resource->count++;
        }
        resource->object[index] = version;
        record(storage, previous ? EVENT_MODIFIED : EVENT_ADDED, resource, version, previous);
        version_unref(previous);
        return version;
}

struct version *object_remove(struct storage *storage, struct resource *resource, const char *key,
                              cJSON *last)
{
        size_t index = object_lower_bound(resource, key);
        struct version *version, *previous;
        cJSON *object;

        if (!is_at(resource, index, key))
                return NULL;
        previous = resource->object[index];
        object = last ? last : version_parse(previous);
        set_resource_version(object, storage->resource_version + 1);
        version = version_new(key, object, storage->resource_version + 1);
        if (!last)
                cJSON_Delete(object);
        if (!version)
                return NULL;
        storage->resource_version++;
        memmove(resource->object + index, resource->object + index + 1,
                (resource->count - index - 1) * sizeof(*resource->object));
        resource->count--;
        record(storage, EVENT_DELETED, resource, version, previous);
        version_unref(previous);
        version_unref(version); /* the history holds it */
        return version;
}
