/* SPDX-License-Identifier: Apache-2.0 */
/* LIST: selectors, pages out of a snapshot, tables for kubectl. The bytes of items are copied as they are
 * stored. */
#include "devserver/read/serve-list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/read/forms.h"
#include "devserver/read/selection.h"
#include "devserver/server.h"
#include "devserver/storage/selector.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/storage.h"
#include "devserver/storage/version.h"

/* Lists in pages that are under way at once; beyond it the one that began first is gone (410). */
#define SNAPSHOTS_MAX 64

struct snapshot {
        struct snapshot *next;
        uint64_t id, resource_version;
        struct resource *resource;
        struct version **object;
        size_t count;
};

/* ---- snapshots: later pages show the state of the first */

static void snapshot_free(struct snapshot *snapshot)
{
        for (size_t i = 0; i < snapshot->count; i++)
                version_unref(snapshot->object[i]);
        free(snapshot->object);
        free(snapshot);
}

void snapshots_free(struct server *server)
{
        while (server->snapshot) {
                struct snapshot *next = server->snapshot->next;

                snapshot_free(server->snapshot);
                server->snapshot = next;
        }
}

static void drop_oldest(struct server *server)
{
        struct snapshot **place = &server->snapshot;

        for (size_t kept = 0; *place && kept < SNAPSHOTS_MAX - 1; kept++)
                place = &(*place)->next;
        while (*place) {
                struct snapshot *old = *place;

                *place = old->next;
                snapshot_free(old);
        }
}

/* What is older than the history is gone. */
static void drop_expired(struct server *server)
{
        struct snapshot **place = &server->snapshot;

        while (*place) {
                struct snapshot *snapshot = *place;

                if (snapshot->resource_version >= server->storage.history_lost) {
                        place = &snapshot->next;
                        continue;
                }
                *place = snapshot->next;
                snapshot_free(snapshot);
        }
}

static struct snapshot *snapshot_new(struct request *request, size_t allocated)
{
        struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

        if (!snapshot)
                return NULL;
        snapshot->resource = request->resource;
        snapshot->resource_version = request->server->storage.resource_version;
        snapshot->object = calloc(allocated + 1, sizeof(struct version *));
        if (!snapshot->object) {
                free(snapshot);
                return NULL;
        }
        return snapshot;
}

static struct snapshot *snapshot_take(struct request *request, const struct selector *selector)
{
        const struct resource *table = request->resource->table;
        struct snapshot *snapshot;
        size_t begin, end;

        object_range(table, request->namespace_name, &begin, &end);
        snapshot = snapshot_new(request, end - begin);
        for (size_t i = begin; snapshot && i < end; i++)
                if (selector_matches(selector, table->object[i]))
                        snapshot->object[snapshot->count++] = version_ref(table->object[i]);
        return snapshot;
}

/* ---- an exact version of the past: what there is now, and the history read backwards */

static int by_key(const void *a, const void *b)
{
        const struct version *const *x = a, *const *y = b;

        return strcmp((*x)->key, (*y)->key);
}

/* Puts `version` in the place of whatever has its key; NULL takes that away. */
static int snapshot_set(struct snapshot *snapshot, const char *key, struct version *version)
{
        size_t low = 0, high = snapshot->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(snapshot->object[middle]->key, key) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low < snapshot->count && strcmp(snapshot->object[low]->key, key) == 0) {
                version_unref(snapshot->object[low]);
                snapshot->object[low] = version_ref(version);
                if (version)
                        return 0;
                memmove(snapshot->object + low, snapshot->object + low + 1,
                        (--snapshot->count - low) * sizeof(struct version *));
        } else if (version) {
                struct version **grown =
                        reallocarray(snapshot->object, snapshot->count + 1, sizeof(struct version *));

                if (!grown)
                        return -ENOMEM;
                snapshot->object = grown;
                snapshot->object[snapshot->count++] = version_ref(version);
                qsort(snapshot->object, snapshot->count, sizeof(struct version *), by_key);
        }
        return 0;
}

static bool is_chosen(const struct request *request, const struct selector *selector,
                      const struct version *version)
{
        return (!request->namespace_name[0] ||
                strcmp(version->namespace_name, request->namespace_name) == 0) &&
               selector_matches(selector, version);
}

static struct snapshot *snapshot_take_at(struct request *request, const struct selector *selector,
                                         uint64_t resource_version)
{
        const struct storage *storage = &request->server->storage;
        struct snapshot *snapshot = snapshot_take(request, selector);

        for (uint64_t v = storage->resource_version; snapshot && v > resource_version; v--) {
                const struct event *event = storage_event(storage, v);
                struct version *before;

                if (!event || event->resource != request->resource->table)
                        continue;
                before = event->previous && is_chosen(request, selector, event->previous) ? event->previous
                                                                                          : NULL;
                if (snapshot_set(snapshot, event->object->key, before) < 0) {
                        snapshot_free(snapshot);
                        return NULL;
                }
        }
        if (snapshot)
                snapshot->resource_version = resource_version;
        return snapshot;
}

/* ---- writing */

static void write_page(struct request *request, const struct snapshot *snapshot, size_t from, size_t limit,
                       bool *ret_more)
{
        size_t end = limit > 0 && snapshot->count - from > limit ? from + limit : snapshot->count;
        enum representation representation = representation_of(request);
        struct text *out = &request->answer;
        struct list_metadata metadata = {.resource_version = snapshot->resource_version};

        *ret_more = end < snapshot->count;
        request->status = 200;
        if (*ret_more)
                snprintf(metadata.token, sizeof(metadata.token), "%llu.%zu",
                         (unsigned long long)snapshot->id, end);
        if (*ret_more && !request_argument(request, "labelSelector") &&
            !request_argument(request, "fieldSelector"))
                metadata.remaining = snapshot->count - end;
        write_list_begin(out, request->resource, representation, &metadata);
        for (size_t i = from; i < end; i++) {
                if (i > from)
                        text_append(out, ",", 1);
                write_item(out, request->resource, snapshot->object[i], representation);
        }
        write_list_end(out, request->resource, representation, &metadata);
}

/* ---- the request */

static size_t limit_of(const struct request *request)
{
        const char *limit = request_argument(request, "limit");

        return limit ? (size_t)strtoull(limit, NULL, 10) : 0;
}

static void continue_list(struct request *request, const char *token)
{
        struct server *server = request->server;
        unsigned long long id = 0;
        size_t from = 0;
        bool more;

        if (sscanf(token, "%llu.%zu", &id, &from) != 2) {
                answer_status(request, 400, "BadRequest", "continue key is not valid: illegal base64 data");
                return;
        }
        drop_expired(server);
        for (const struct snapshot *snapshot = server->snapshot; snapshot; snapshot = snapshot->next)
                if (snapshot->id == id && snapshot->resource == request->resource &&
                    from <= snapshot->count) {
                        write_page(request, snapshot, from, limit_of(request), &more);
                        return;
                }
        answer_status(request, 410, "Expired",
                      "The provided continue parameter is too old to display a consistent list result. "
                      "You can start a new list without the continue parameter.");
}

/* false: answered. The real server waits for seconds whether the version comes; here nothing is ever late.
 */
static bool version_has_come(struct request *request, const char *version)
{
        unsigned long long wanted = version ? strtoull(version, NULL, 10) : 0;

        if (wanted <= request->server->storage.resource_version)
                return true;
        answer_too_large(request, wanted);
        return false;
}

static void refuse_option(struct request *request, const char *text)
{
        answer_status(request, 422, "Invalid", "ListOptions.meta.k8s.io \"\" is invalid: %s", text);
}

/* false: answered. */
static bool match_is_valid(struct request *request, const char *version, const char *match)
{
        bool exact = match && strcmp(match, "Exact") == 0;

        if (!match || !match[0])
                return true;
        if (!version || !version[0])
                refuse_option(request, "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden "
                                       "unless resourceVersion is provided");
        else if (!exact && strcmp(match, "NotOlderThan") != 0)
                refuse_option(request, "resourceVersionMatch: Unsupported value: supported values: "
                                       "\"Exact\", \"NotOlderThan\", \"\"");
        else if (exact && strcmp(version, "0") == 0)
                refuse_option(request, "resourceVersionMatch: Forbidden: resourceVersionMatch \"Exact\" is "
                                       "forbidden for resourceVersion \"0\"");
        return request->status == 0;
}

/* false: answered. */
static bool options_are_valid(struct request *request)
{
        const char *token = request_argument(request, "continue");
        const char *version = request_argument(request, "resourceVersion");
        const char *limit = request_argument(request, "limit");

        if (version && !version_is_number(version))
                answer_status(request, 400, "BadRequest",
                              "resourceVersion: Invalid value: \"%s\": is no number", version);
        else if (limit && !version_is_number(limit))
                answer_status(request, 400, "BadRequest", "limit: Invalid value: \"%s\": is no number",
                              limit);
        else if (token && token[0] && version && version[0] && strcmp(version, "0") != 0)
                answer_status(request, 400, "BadRequest",
                              "specifying resource version is not allowed when using continue");
        return request->status == 0;
}

/* An exact version is asked for by its name, or, as before there was one, by a version with a limit. */
static bool wants_exact(const struct request *request, const char *version)
{
        const char *match = request_argument(request, "resourceVersionMatch");

        if (!version || !version[0] || strcmp(version, "0") == 0)
                return false;
        return match && match[0] ? strcmp(match, "Exact") == 0 : limit_of(request) > 0;
}

static void start_list(struct request *request, const struct selector *selector, const char *version)
{
        struct server *server = request->server;
        uint64_t exact = wants_exact(request, version) ? strtoull(version, NULL, 10) : 0;
        struct snapshot *snapshot;
        bool more = false;

        if (exact > 0 && exact < server->storage.history_lost) {
                answer_status(request, 410, "Expired",
                              "The resourceVersion for the provided list is too old.");
                return;
        }
        snapshot = exact > 0 ? snapshot_take_at(request, selector, exact) : snapshot_take(request, selector);
        if (!snapshot) {
                answer_status(request, 500, "InternalError", "no memory");
                return;
        }
        snapshot->id = ++server->last_snapshot;
        write_page(request, snapshot, 0, limit_of(request), &more);
        if (more) {
                drop_expired(server);
                drop_oldest(server);
                snapshot->next = server->snapshot;
                server->snapshot = snapshot;
        } else {
                snapshot_free(snapshot);
        }
}

void list_handle(struct request *request)
{
        const char *token = request_argument(request, "continue");
        const char *version = request_argument(request, "resourceVersion");
        struct selector *selector;

        if (!options_are_valid(request))
                return;
        if (token && token[0]) {
                continue_list(request, token);
                return;
        }
        if (!match_is_valid(request, version, request_argument(request, "resourceVersionMatch")) ||
            !version_has_come(request, version))
                return;
        selector = list_selector(request);
        if (selector)
                start_list(request, selector, version);
        selector_free(selector);
}
