/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/storage.h"

#include <errno.h>
#include <string.h>

#include "devserver/convert.h"
#include "devserver/form.h"
#include "json/json.h"

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
        free(version->uid);
        for (size_t i = 0; i < version->owner_count; i++)
                free(version->owner[i].uid);
        free(version->owner);
        free(version->json);
        cJSON_Delete(version->labels);
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

static bool is_type_member(const cJSON *member)
{
        return strcmp(member->string, "apiVersion") == 0 || strcmp(member->string, "kind") == 0;
}

/* apiVersion and kind stand first, mostly, so that a list of built-in kinds can leave them out by an offset.
 */
static size_t bare_offset(const cJSON *object)
{
        const cJSON *first = object->child, *second = first ? first->next : NULL;
        char *a, *b;
        size_t offset;

        if (!second || !second->next || !is_type_member(first) || !is_type_member(second))
                return 0;
        a = cJSON_PrintUnformatted(first);
        b = cJSON_PrintUnformatted(second);
        offset = a && b ? strlen("{\"apiVersion\":,\"kind\":,") + strlen(a) + strlen(b) : 0;
        free(a);
        free(b);
        return offset;
}

static int set_resource_version(cJSON *object, uint64_t resource_version)
{
        cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        char text[24];

        snprintf(text, sizeof(text), "%llu", (unsigned long long)resource_version);
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, "resourceVersion");
        return cJSON_AddStringToObject(metadata, "resourceVersion", text) ? 0 : -ENOMEM;
}

static int read_owners(struct version *version, const cJSON *metadata)
{
        const cJSON *list = cJSON_GetObjectItemCaseSensitive(metadata, "ownerReferences"), *item;
        int count = cJSON_GetArraySize(list);

        if (count == 0)
                return 0;
        version->owner = calloc((size_t)count, sizeof(struct owner_reference));
        if (!version->owner)
                return -ENOMEM;
        cJSON_ArrayForEach(item, list)
        {
                const char *uid = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "uid"));
                struct owner_reference *owner = &version->owner[version->owner_count];

                owner->uid = strdup(uid ? uid : "");
                if (!owner->uid)
                        return -ENOMEM;
                owner->blocks = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "blockOwnerDeletion"));
                version->owner_count++;
        }
        return 0;
}

static struct version *version_new(const char *key, cJSON *object, uint64_t resource_version, bool builtin)
{
        const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        struct version *version = calloc(1, sizeof(*version));

        if (!version)
                return NULL;
        version->references = 1;
        version->resource_version = resource_version;
        version->key = strdup(key);
        version->namespace_name = strdup(metadata_text(object, "namespace"));
        version->name = strdup(metadata_text(object, "name"));
        version->uid = strdup(metadata_text(object, "uid"));
        version->labels = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(metadata, "labels"), true);
        version->deleting = cJSON_HasObjectItem(metadata, "deletionTimestamp");
        form_arrange(object, builtin);
        version->builtin = builtin;
        version->json = form_print(object);
        if (!version->key || !version->namespace_name || !version->name || !version->uid || !version->json ||
            read_owners(version, metadata) < 0) {
                version_unref(version);
                return NULL;
        }
        version->size = strlen(version->json);
        version->bare_offset = bare_offset(object);
        return version;
}

static int set_api_version(cJSON *object, const struct resource *resource)
{
        _cleanup_free_ char *api_version = resource_api_version(resource);

        return api_version ? convert_to(object, api_version) : -ENOMEM;
}

cJSON *version_parse_as(const struct version *version, const struct resource *resource)
{
        cJSON *object = version_parse(version);

        if (object && set_api_version(object, resource) < 0) {
                cJSON_Delete(object);
                return NULL;
        }
        if (object && resource->builtin && resource->table != resource)
                form_arrange(object, true);
        return object;
}

struct version *version_at(const struct version *version, uint64_t resource_version)
{
        cJSON *object = version_parse(version);
        struct version *copy = NULL;

        if (object && set_resource_version(object, resource_version) == 0)
                copy = version_new(version->key, object, resource_version, version->builtin);
        cJSON_Delete(object);
        return copy;
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

static void resource_free(struct resource *resource)
{
        for (size_t i = 0; i < resource->count; i++)
                version_unref(resource->object[i]);
        free(resource->object);
        free(resource->group);
        free(resource->version);
        free(resource->kind);
        free(resource->list_kind);
        free(resource->plural);
        free(resource->singular);
        cJSON_Delete(resource->short_name);
        cJSON_Delete(resource->category);
        cJSON_Delete(resource->column);
        cJSON_Delete(resource->schema);
        free(resource);
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
        resource->table = resource;
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

static void describe_text(char **text, const cJSON *names, const char *name)
{
        const char *given = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(names, name));

        if (given && given[0]) {
                free(*text);
                *text = strdup(given);
        }
}

static void describe_list(cJSON **list, const cJSON *given)
{
        cJSON_Delete(*list);
        *list = cJSON_GetArraySize(given) > 0 ? cJSON_Duplicate(given, true) : NULL;
}

void resource_describe(struct resource *resource, const cJSON *names, const cJSON *columns,
                       const cJSON *schema)
{
        describe_text(&resource->singular, names, "singular");
        describe_text(&resource->list_kind, names, "listKind");
        describe_list(&resource->short_name, cJSON_GetObjectItemCaseSensitive(names, "shortNames"));
        describe_list(&resource->category, cJSON_GetObjectItemCaseSensitive(names, "categories"));
        describe_list(&resource->column, columns);
        cJSON_Delete(resource->schema);
        resource->schema = schema ? cJSON_Duplicate(schema, true) : NULL;
        if (!resource->column)
                resource->column = cJSON_Parse("[{\"name\":\"Age\",\"type\":\"date\",\"jsonPath\":"
                                               "\".metadata.creationTimestamp\"}]");
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
        size_t low = 0, high = resource->table->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(resource->table->object[middle]->key, key) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

void object_range(const struct resource *resource, const char *namespace_name, size_t *ret_begin,
                  size_t *ret_end)
{
        char bound[512];

        *ret_begin = 0;
        *ret_end = resource->table->count;
        if (!namespace_name[0])
                return;
        snprintf(bound, sizeof(bound), "%.500s/", namespace_name);
        *ret_begin = object_lower_bound(resource, bound);
        bound[strlen(bound) - 1] = '/' + 1;
        *ret_end = object_lower_bound(resource, bound);
}

static bool is_at(const struct resource *resource, size_t index, const char *key)
{
        return index < resource->count && strcmp(resource->object[index]->key, key) == 0;
}

struct version *object_find(const struct resource *resource, const char *key)
{
        size_t index = object_lower_bound(resource, key);

        return is_at(resource->table, index, key) ? resource->table->object[index] : NULL;
}

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

static void record(struct storage *storage, enum event_type type, struct resource *resource,
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
        if (set_api_version(object, resource) < 0 || make_room(resource) < 0 ||
            set_resource_version(object, storage->resource_version + 1) < 0)
                return NULL;
        version = version_new(key, object, storage->resource_version + 1, resource->builtin);
        if (!version || owner_index_add(&storage->owners, resource, version) < 0) {
                version_unref(version);
                return NULL;
        }
        if (is_at(resource, index, key)) {
                previous = resource->object[index];
                owner_index_remove(&storage->owners, previous);
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
        struct version *version, *previous;
        cJSON *object;
        size_t index;

        resource = resource->table;
        index = object_lower_bound(resource, key);
        if (!is_at(resource, index, key))
                return NULL;
        previous = resource->object[index];
        object = last ? last : version_parse(previous);
        version = object && set_api_version(object, resource) == 0 &&
                                  set_resource_version(object, storage->resource_version + 1) == 0
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
        record(storage, EVENT_DELETED, resource, version, previous);
        version_unref(previous);
        version_unref(version); /* the history holds it */
        return version;
}
