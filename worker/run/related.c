/* SPDX-License-Identifier: Apache-2.0 */
/* See related.h. */
#include "worker/run/related.h"

#include <errno.h>
#include <search.h>
#include <string.h>

#include "object/keyed-hash.h"
#include "store/owner.h"
#include "store/reader.h"
#include "store/record.h"
#include "worker/dependents/dependent.h"
#include "worker/run/request.h"

/* The place after the namespace in the key of the run's object, which is related to objects of that
 * namespace. NULL: the object belongs to no namespace, or it is the operator's own, which is related to
 * objects of all namespaces. */
static const char *slash_of(const struct run *run)
{
        return run->watch->config->own_action[0] ? NULL : strchr(run->order->key, '/');
}

/* What a program gives: each name once, in the order in which it first comes. */
struct name_list {
        char *name[DEPENDENTS_MAX];
        size_t count; /* of different names; DEPENDENTS_MAX + 1 if there are more than are kept */
        void *tree;   /* of the names, as tsearch() has it */
};

struct collection {
        struct run *run;
        struct worker_watch *watch;
        struct text *json; /* NULL: they are only looked at */
        struct text versions;
        size_t count, size;
        size_t room; /* bytes that the JSON may have */
        uint64_t
                generation; /* of the watch's store: CURRENT is a file, too slow to be asked for each name */
};

static int add_related(struct collection *collection, const struct store_object *related)
{
        struct scan_object object;
        int r = scan_object(related->json, related->json_size, &object);

        if (r < 0)
                return r;
        collection->size += related->json_size + 1;
        if (collection->size > collection->room)
                return -E2BIG;
        if (collection->count++ > 0 && collection->json)
                text_append_string(collection->json, ",");
        if (collection->json)
                request_write_with_kind(collection->watch->config, &object, collection->json);
        if (strcmp(related->uid, collection->run->order->uid) == 0)
                return 0; /* the object itself: each status that its run writes would cause the next run */
        return text_printf(&collection->versions, "%s %s %s\n", related->key, related->uid,
                           related->resource_version);
}

static int add_visited(const struct store_object *related, void *userdata)
{
        return add_related(userdata, related);
}

/* A kind is namespaced or not: the first object shows which. */
static int add_of_cluster(const struct store_object *related, void *userdata)
{
        struct scan_object object;
        int r = scan_object(related->json, related->json_size, &object);

        if (r >= 0 && object.namespace_name.start && object.namespace_name.size > 2)
                return -ENOENT; /* ends the visit */
        return r < 0 ? r : add_related(userdata, related);
}

/* Adds all related objects of the object's namespace; for an object of the cluster, those of all
 * namespaces. */
static int add_all(struct collection *collection)
{
        const char *key = collection->run->order->key, *slash = slash_of(collection->run);
        _cleanup_free_ char *prefix = strndup(key, slash ? (size_t)(slash + 1 - key) : 0);
        int r = prefix ? store_visit_prefix(collection->watch->reader, prefix, add_visited, collection)
                       : -ENOMEM;

        return r >= 0 && slash
                       ? store_visit_prefix(collection->watch->reader, "", add_of_cluster, collection)
                       : r;
}

static int add_key(struct collection *collection, const char *key)
{
        struct store_object related = {0};
        int r = store_read(collection->watch->reader, collection->generation, key, &related);

        if (r >= 0)
                r = add_related(collection, &related);
        store_object_done(&related);
        return r;
}

/* Adds an object of the run's namespace, or of the cluster; for an object of the cluster also
 * "namespace/name". One that does not exist (yet) is left out. */
static int add_named(struct collection *collection, const char *name)
{
        const char *own = collection->run->order->key, *slash = slash_of(collection->run);
        _cleanup_free_ char *key = NULL;
        int r;

        if (strchr(name, '/') && slash)
                return -EXDEV;
        if (slash && asprintf(&key, "%.*s/%s", (int)(slash - own), own, name) < 0) {
                key = NULL;
                return -ENOMEM;
        }
        r = key ? add_key(collection, key) : -ENOENT;
        if (r == -ENOENT)
                r = add_key(collection, name);
        return r == -ENOENT || r == -ENAMETOOLONG ? 0 : r;
}

static int compare_related_names(const void *one, const void *other)
{
        return strcmp(one, other);
}

/* Notes a name. One beyond the bound ends the program: it could go on without end. */
static int note_name(const char *name, void *userdata)
{
        struct name_list *list = userdata;
        char *copy;

        if (tfind(name, &list->tree, compare_related_names))
                return 0;
        if (list->count == DEPENDENTS_MAX) {
                list->count++;
                return 1;
        }
        copy = strdup(name);
        if (!copy || !tsearch(copy, &list->tree, compare_related_names)) {
                free(copy);
                return -ENOMEM;
        }
        list->name[list->count++] = copy;
        return 0;
}

static void name_list_free(struct name_list *list)
{
        if (list)
                tdestroy(list->tree, free);
        free(list);
}
DEFINE_CLEANUP(struct name_list *, name_list_free);

/* 0; -EBADMSG: the program fails, and `error` says how. */
static int find_names(struct collection *collection, struct name_list *list, struct error *error)
{
        const struct run *run = collection->run;
        const char *kind = collection->watch->config->kind;
        _cleanup_error_ struct error words = ERROR_NONE;
        int r = jq_program_names(collection->watch->names_program, run->json, strlen(run->json),
                                 run->watch->config->metadata_only, note_name, list, &words);

        if (words.status < 0)
                return error_set(error, -EBADMSG, "`names` of the related kind %s fails on the object: %s",
                                 kind,
                                 run->watch->config->confidential && r != -E2BIG
                                         ? "its message is not shown: it may quote confidential content"
                                         : error_message(&words));
        if (r >= 0 && list->count > DEPENDENTS_MAX)
                return error_set(
                        error, -EBADMSG,
                        "`names` of the related kind %s gives more than %d different names, the most that "
                        "an object may give",
                        kind, DEPENDENTS_MAX);
        return r;
}

static int add_of_watch(struct collection *collection, struct error *error)
{
        _cleanup_(name_list_free_pointer) struct name_list *list = NULL;
        int r;

        if (!collection->watch->names_program)
                return add_all(collection);
        list = calloc(1, sizeof(*list));
        r = list ? find_names(collection, list, error) : -ENOMEM;
        if (r >= 0)
                r = store_reader_current(collection->watch->reader, &collection->generation);
        for (size_t i = 0; r >= 0 && i < list->count; i++)
                r = add_named(collection, list->name[i]);
        if (r == -EXDEV)
                return error_set(
                        error, -EBADMSG,
                        "`names` of the related kind %s gives an object of another namespace, whose "
                        "changes would not be seen",
                        collection->watch->config->kind);
        return r;
}

/* The size is approximate: objects that the program does not name are counted as well. */
static int refuse_size(struct collection *collection, struct error *error)
{
        const struct run *run = collection->run;
        const char *key = run->order->key, *slash = slash_of(run);
        _cleanup_free_ char *prefix = strndup(key, slash ? (size_t)(slash + 1 - key) : 0), *text = NULL;
        size_t bytes = strlen(run->json) + collection->size;
        struct store_extent extent;
        int r;

        if (collection->json)
                text_done(collection->json); /* before anything else is done */
        r = prefix ? store_extent_prefix(collection->watch->reader, prefix, &extent) : -ENOMEM;
        if (r >= 0 && extent.count == 0) /* of the cluster */
                r = store_extent_prefix(collection->watch->reader, "", &extent);
        if (r < 0)
                return r;
        text = request_excess(run, collection->watch->config, bytes, &extent);
        return text ? error_set(error, -E2BIG, "%s", text) : -ENOMEM;
}

/* *ret_any: there are such watches. */
static int collect(struct collection *collection, bool *ret_any, struct error *error)
{
        const struct record_watch *own = collection->run->watch->config;
        struct worker *worker = collection->run->worker;
        int r = 0;

        collection->room = own->request_max > 0 ? own->request_max : SIZE_MAX;
        for (size_t i = 0; i < worker->watch_count && r >= 0; i++) {
                struct worker_watch *watch = &worker->watch[i];

                if (!watch->config->related || strcmp(watch->config->owner, own->name) != 0)
                        continue;
                *ret_any = true;
                collection->watch = watch;
                r = add_of_watch(collection, error);
                if (r == -EBADMSG && error->status == 0)
                        r = run_store_damaged(collection->run, watch->config);
                r = r == -E2BIG ? refuse_size(collection, error) : r == -ENOENT ? 0 : r;
        }
        return r;
}

int related_collect(struct run *run, struct error *error)
{
        struct collection collection = {.run = run};
        bool any = false;
        int r = collect(&collection, &any, error);

        if (r >= 0 && any) {
                run->related.fingerprint = keyed_hash_end(
                        keyed_hash_of(HASHED_RELATED), collection.versions.data, collection.versions.size);
                run->related.is_known = true;
                run->related.size = collection.size;
                r = collection.versions.failed ? -ENOMEM : 0;
        }
        text_done(&collection.versions);
        return r;
}

int related_write(struct run *run, struct text *out)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct collection collection = {.run = run, .json = out};
        bool any = false;
        int r;

        if (!run->related.is_known)
                return 0;
        text_append_string(out, ",\"related\":[");
        r = collect(&collection, &any, &error);
        text_done(&collection.versions);
        if (r == -E2BIG) { /* since they were looked at */
                free(run->excess);
                run->excess = strdup(error_message(&error));
                return run->excess ? r : -ENOMEM;
        }
        return r < 0 ? r : text_append_string(out, "]");
}
