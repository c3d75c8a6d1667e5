/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/recall.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/duration.h"
#include "kube/path.h"
#include "object/keyed-hash.h"
#include "object/scan-list.h"
#include "store/owner.h"
#include "worker/confidential.h"
#include "worker/confine.h"
#include "worker/dependents/notes.h"
#include "worker/dependents/ownership.h"
#include "worker/waiting.h"
#include "worker/write/object.h"

#define PARTIAL_LIST "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
#define PAGE         "500"
#define ITEM_MAX     ((size_t)4 * 1024 * 1024)
#define TIMEOUT_USEC (60 * USEC_PER_SEC)

/* ---- kinds and namespaces, as the ledger keeps them (object/child-kinds.h) */

static bool is_before(const struct dependent_list *list, size_t count, const char *api_version,
                      const char *kind, const char *namespace_name)
{
        for (size_t i = 0; i < count; i++)
                if (strcmp(list->item[i].api_version, api_version) == 0 &&
                    strcmp(list->item[i].kind, kind) == 0 &&
                    strcmp(list->item[i].namespace_name, namespace_name) == 0)
                        return true;
        return false;
}

/* Dependents that are left alone do not get into the ledger. */
static void drop_left_alone(const struct dependents *dependents, struct dependent_list *list)
{
        size_t kept = 0;
        bool any = false;

        for (size_t i = 0; i < dependents->known.count && !any; i++)
                any = dependents->known.item[i].beyond;
        for (size_t i = 0; i < list->count && any; i++) {
                const struct dependent *known = dependent_list_find(&dependents->known, &list->item[i]);

                if (known && known->beyond)
                        dependent_done(&list->item[i]);
                else
                        list->item[kept++] = list->item[i];
        }
        list->count = any ? kept : list->count;
}

/* The run did not come as far as to know what the object has now. */
static bool kinds_are_as_before(const struct dependents *dependents, const char *record)
{
        return !dependents || (!record && (dependents->cleanup || dependents->undo)) ||
               (dependents->lost.count > 0 && !dependents->recall.done);
}

static int print_former_kinds(const struct run *run, struct text *out)
{
        if (!child_versions_are_news(run))
                return -ENODATA;
        if (run->versions.unknown || (child_kinds_are_unknown(run->order->kinds) && !run->presented))
                text_append_string(out, "?");
        if (!child_kinds_are_none(run->order->kinds))
                text_printf(out, "%zu#%" PRIx64, child_kinds_count(run->order->kinds),
                            child_kinds_hash(run->order->kinds));
        child_versions_print_former(run, false, out);
        return out->failed ? -ENOMEM : 0;
}

static size_t count_left(const struct dependent_list *list)
{
        size_t count = 0;

        for (size_t i = 0; i < list->count; i++)
                count += !list->item[i].settled;
        return count;
}

/* A hash of which children the list names, in whatever order. No two of them are the same. */
static uint64_t hash_of(const struct dependent_list *list)
{
        uint64_t sum = 0;

        FOREACH_ARRAY(item, list->item, list->count) {
                char name[1400];
                int size = snprintf(name, sizeof(name), "%s/%s/%s/%s", item->api_version, item->kind,
                                    item->namespace_name, item->name);

                sum += keyed_hash_end(keyed_hash_of(HASHED_CHILD_LIST), name,
                                      (size_t)size < sizeof(name) ? (size_t)size : sizeof(name) - 1);
        }
        return sum;
}

int recall_kinds(const struct run *run, struct text *out)
{
        _cleanup_free_ char *record = NULL;
        struct dependent_list list = {0};
        int r;

        record = run->dependents ? notes_find_record(run, object_json(run)) : NULL;
        if (kinds_are_as_before(run->dependents, record))
                return print_former_kinds(run, out);
        r = record ? dependent_list_from_record(record, &list) : 0;
        /* Dependents that were found by their label, and are not recorded yet, must be found again. */
        if (run->dependents->recall.found > 0 && list.count < count_left(&run->dependents->known)) {
                dependent_list_done(&list);
                return print_former_kinds(run, out);
        }
        drop_left_alone(run->dependents, &list);
        text_append_string(out, run->versions.unknown ? "?" : "");
        if (list.count > 0)
                text_printf(out, "%zu#%" PRIx64, list.count, hash_of(&list));
        for (size_t i = 0; i < list.count; i++) {
                const struct dependent *item = &list.item[i];

                /* Entries that only the list knows must not get into the ledger through it. */
                if (confine_knows(run, item->api_version, item->kind) &&
                    !is_before(&list, i, item->api_version, item->kind, item->namespace_name))
                        child_versions_print(run, item->api_version, item->kind, item->namespace_name, out);
        }
        /* Deleted dependents are not on the list any more, and may still be in a store. */
        child_versions_print_former(run, true, out);
        dependent_list_done(&list);
        return r < 0 ? r : out->failed ? -ENOMEM : 0;
}

/* Takes the strings, each of which may be NULL: no memory. No namespace: all of them. */
static int add_lost(struct dependents *dependents, char *api_version, char *kind, char *namespace_name)
{
        struct dependent lost = {
                .index = dependents->lost.count,
                .api_version = api_version,
                .kind = kind,
                .namespace_name = namespace_name,
                .name = strdup("*"), /* for people */
        };

        return dependent_list_add(&dependents->lost, &lost);
}

static int add_entries(struct dependents *dependents, const char *kinds)
{
        struct child_kind entry;
        int r = 0;

        while (r >= 0 && child_kinds_next(&kinds, &entry))
                r = add_lost(dependents, strndup(entry.api_version.start, entry.api_version.size),
                             strndup(entry.kind.start, entry.kind.size),
                             strndup(entry.namespace_name.start, entry.namespace_name.size));
        return r;
}

/* ---- kinds and namespaces, as the stores show them */

struct member_search {
        struct dependents *dependents;
        const struct record_watch *watch;
};

static int look_at_member(const struct store_object *object, void *userdata)
{
        const struct member_search *search = userdata;
        struct dependents *dependents = search->dependents;
        const char *slash = strchr(object->key, '/');
        _cleanup_free_ char *json = strndup(object->json, object->json_size);
        _cleanup_free_ char *set = json ? notes_find(json, true, NOTES_PART_OF) : NULL;
        _cleanup_free_ char *namespace_name =
                strndup(object->key, slash ? (size_t)(slash - object->key) : 0);
        const char *api_version = search->watch->api_version, *kind = search->watch->kind;

        if (!json || !namespace_name)
                return -ENOMEM;
        if (!set || strcmp(set, dependents->owner.set) != 0 ||
            is_before(&dependents->lost, dependents->lost.count, api_version, kind, namespace_name))
                return 0;
        return add_lost(dependents, strdup(api_version), strdup(kind), TAKE_PTR(namespace_name));
}

/* The ledger's row goes when the object leaves the selection. If the annotation goes as well before the
 * object is back, only the stores still know of its dependents, where the watch owns their kinds. */
static int add_owned_kinds(struct dependents *dependents)
{
        const struct run *run = dependents->run;
        int r = 0;

        for (size_t i = 0; i < run->worker->watch_count && r >= 0; i++) {
                const struct worker_watch *watch = &run->worker->watch[i];
                struct member_search search = {dependents, watch->config};

                if (watch->config->related || strcmp(watch->config->owner, run->watch->config->name) != 0)
                        continue;
                r = store_visit_owned(watch->reader, run->order->uid, "", look_at_member, &search);
                if (r == -ENOENT || r == -EBADMSG) /* no store yet; or damage, which the request has met */
                        r = 0;
        }
        return r;
}

/* ---- a list that nothing proves */

#define LOOKS_MAX 50 /* entries that are asked for one by one, beside as many as the object had */
#define LISTS_MAX 50

static bool is_proven(const struct dependents *dependents)
{
        const char *kinds = dependents->run->order->kinds;

        return !child_kinds_are_none(kinds) && hash_of(&dependents->known) == child_kinds_hash(kinds);
}

int recall_doubt(struct dependents *dependents)
{
        const struct run *run = dependents->run;
        size_t looks = LOOKS_MAX, seen = 0;
        int r = 0;

        if (!child_kinds_are_none(run->order->kinds))
                looks += child_kinds_count(run->order->kinds);
        if (dependents->known.count <= looks || is_proven(dependents))
                return 0;
        for (size_t i = 0; i < dependents->known.count && r >= 0; i++) {
                struct dependent *item = &dependents->known.item[i];

                if (item->beyond || seen++ < looks)
                        continue;
                item->beyond = item->doubted = dependents->recall.doubted = true;
                if (!dependents->present && dependents->lost.count < LISTS_MAX &&
                    confine_knows(run, item->api_version, item->kind) &&
                    !is_before(&dependents->lost, dependents->lost.count, item->api_version, item->kind,
                               item->namespace_name))
                        r = add_lost(dependents, strdup(item->api_version), strdup(item->kind),
                                     strdup(item->namespace_name));
        }
        return r;
}

/* Those that were not found by their label, where it was looked for, are no children. */
static void settle_doubted(struct dependents *dependents)
{
        FOREACH_ARRAY(item, dependents->known.item, dependents->known.count)
                item->settled =
                        item->settled ||
                        (item->doubted && is_before(&dependents->lost, dependents->lost.count,
                                                    item->api_version, item->kind, item->namespace_name));
}

/* ---- both */

int recall_begin(struct dependents *dependents)
{
        const struct run *run = dependents->run;
        bool is_none = child_kinds_are_none(run->order->kinds);
        int r = 0;

        if (!is_none && !is_proven(dependents))
                r = add_entries(dependents, run->order->kinds);
        else if (is_none && dependents->known.count == 0)
                r = add_owned_kinds(dependents);
        return r < 0 ? r : recall_doubt(dependents);
}

/* ---- asking for them */

/* Anybody may put the label on an object, so the mark counts. That of a former object of this name does as well: the
 * object may have been restored. */
static bool is_ours(const struct dependents *dependents, const struct dependent *dependent, const char *json,
                    size_t size)
{
        const char *id = dependents->owner.id ? dependents->owner.id : "";
        struct ownership_view view;

        return ownership_judge(&dependents->owner, dependent, json, size, &view) >= 0 &&
               (view.whose == OWNERSHIP_OURS ||
                (view.whose == OWNERSHIP_FORMER && strcmp(view.id, id) == 0));
}

struct page {
        struct dependents *dependents;
        const struct dependent *kind;
};

static int take_item(const char *item, size_t size, void *userdata)
{
        const struct page *page = userdata;
        struct dependents *dependents = page->dependents;
        const struct dependent *kind = page->kind;
        struct dependent dependent = {.index = dependents->known.count};
        struct dependent *known;
        struct scan_object object;
        int r = item ? scan_object(item, size, &object) : -EBADMSG;

        if (r >= 0)
                r = scan_string(object.name, &dependent.name);
        if (r >= 0 && object.namespace_name.start)
                r = scan_string(object.namespace_name, &dependent.namespace_name);
        else if (r >= 0)
                dependent.namespace_name = strdup("");
        dependent.api_version = strdup(kind->api_version);
        dependent.kind = strdup(kind->kind);
        if (r >= 0 && (!dependent.api_version || !dependent.kind || !dependent.namespace_name))
                r = -ENOMEM;
        known = r < 0 ? NULL : dependent_list_find(&dependents->known, &dependent);
        if (r < 0 || known || !is_ours(dependents, &dependent, item, size)) {
                if (known && known->doubted && is_ours(dependents, &dependent, item, size))
                        known->beyond = known->doubted = false;
                dependent_done(&dependent);
                return r;
        }
        dependents->recall.found++;
        return dependent_list_add(&dependents->known, &dependent);
}

/* Dependents in the list of another watch are not lost. */
static void drop_kept(struct dependents *dependents)
{
        for (size_t i = 0; i < dependents->known.count; i++)
                dependents->known.item[i].settled =
                        dependents->known.item[i].settled ||
                        dependent_list_has(&dependents->kept, &dependents->known.item[i]);
}

/* next: the continue token; NULL: the first page, or the last one. 1: there are more pages; 0: that was the last one. */
static int take_list(struct dependents *dependents, const struct dependent *kind,
                     const struct kube_response *response, char **next)
{
        _cleanup_(scan_list_free_pointer) struct scan_list *list = NULL;
        struct page page = {dependents, kind};
        struct scan_list_metadata metadata;
        int r = scan_list_new(ITEM_MAX, take_item, &page, &list);

        if (r >= 0)
                r = scan_list_feed(list, response->body, response->body_size);
        if (r >= 0)
                r = scan_list_finish(list, &metadata);
        if (r >= 0 && scan_list_is_endless(&metadata, *next))
                r = -ELOOP;
        if (r < 0)
                return r;
        free(TAKE_PTR(*next));
        if (!metadata.continue_token[0])
                return 0;
        *next = strdup(metadata.continue_token);
        return *next ? 1 : -ENOMEM;
}

static int ask_for_page(const struct dependents *dependents, const struct dependent *kind, const char *next,
                        struct kube_answer *ret) _suspends_
{
        const char *namespace_name = kind->namespace_name[0] ? kind->namespace_name : NULL;
        _cleanup_free_ char *base = kube_path(&kind->resource, namespace_name, NULL, NULL);
        _cleanup_text_ struct text path = TEXT_EMPTY, selector = TEXT_EMPTY;
        struct kube_request request = {
                .method = "GET",
                .accept = PARTIAL_LIST,
                .timeout_usec = TIMEOUT_USEC,
                .confidential = is_confidential(dependents->run->worker, kind->api_version, kind->kind),
        };

        text_append_string(&path, base);
        text_printf(&selector, NOTES_PART_OF "=%s", dependents->owner.set);
        kube_path_add(&path, "labelSelector", selector.data);
        kube_path_add(&path, "limit", PAGE);
        if (next)
                kube_path_add(&path, "continue", next);
        if (!base || path.failed || selector.failed)
                return -ENOMEM;
        request.path = path.data;
        return run_request(dependents->run, &request, ret);
}

/* 1: there are more pages; else as for dependents_each(). */
static int list_page(struct dependents *dependents, struct dependent *kind, char **next) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        int r = ask_for_page(dependents, kind, *next, &answer);

        if (r < 0)
                return r;
        if (answer.response.error.failure == KUBE_FAILURE_NONE) {
                r = take_list(dependents, kind, &answer.response, next);
                return r < 0 ? run_finish(dependents->run, RESULT_RETRY,
                                          "the list of its children cannot be understood: %s",
                                          r == -ELOOP ? SCAN_LIST_ENDLESS : strerror(-r))
                             : r;
        }
        if (!kube_error_is_gone(&answer.response.error) || !*next)
                return dependents_take_failure(dependents, kind, "cannot be looked for", &answer.response);
        free(TAKE_PTR(*next)); /* the list begins again */
        return 1;
}

static int list_kind(struct dependents *dependents, struct dependent *kind) _suspends_
{
        _cleanup_free_ char *next = NULL;
        int r = dependents_resolve(dependents, kind);

        if (r == -ENXIO && !dependents_is_believed(dependents))
                dependents_fail(dependents, kind, "cannot be looked for", dependents->no_kind);
        if (r <= 0)
                return r == -ENXIO ? 0 : r;
        do
                r = list_page(dependents, kind, &next);
        while (r > 0);
        return r;
}

/* If one kind could not be listed, the dependents that were found are not all of them, so nothing is
 * done. */
int recall_lost(struct dependents *dependents)
{
        const struct run *run = dependents->run;
        int r = dependents_each(dependents, &dependents->lost, false, list_kind);

        if (r < 0)
                return r;
        if (dependents->failed.count > 0)
                return -EHOSTDOWN;
        if (dependents->lost.count == 0)
                return 0;
        dependents->recall.done = true;
        drop_kept(dependents);
        settle_doubted(dependents);
        /* An object that is new to this watch, and another's before, has lost nothing. */
        if (run->object.json && dependents->recall.found > 0)
                log_warning(
                        "watch %s, %s: the list of its children was taken off it or shortened; %zu of them %s "
                        "found by their label",
                        run->order->watch, run->order->key, dependents->recall.found,
                        counted(dependents->recall.found, "was", "were"));
        return 0;
}
