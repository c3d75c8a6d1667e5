/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/child-versions.h"

#include <inttypes.h>
#include <stdlib.h>

#include "store/meta.h"
#include "worker/run-state.h"

/* ---- noting */

void child_versions_done(struct child_versions *versions)
{
        for (size_t i = 0; i < versions->count; i++)
                free(versions->item[i].namespace_name);
        free(versions->item);
}

/* Short of memory, the outcome counts as unknown. */
void child_versions_add(struct run *run, const struct record_watch *owned, const char *namespace_name,
                        const char *version, bool deleted)
{
        struct child_versions *versions = &run->versions;
        struct child_version noted = {owned, NULL, resource_version_number(version), deleted}, *grown;

        if (!owned || noted.version == 0)
                return;
        noted.namespace_name = strdup(namespace_name);
        grown = reallocarray(versions->item, versions->count + 1, sizeof(*grown));
        versions->item = grown ? grown : versions->item;
        if (!grown || !noted.namespace_name) {
                free(noted.namespace_name);
                versions->unknown = true;
                return;
        }
        versions->item[versions->count++] = noted;
}

/* ---- the stores of owned kinds */

static struct worker_watch *find_store(const struct run *run, const char *api_version, const char *kind)
{
        const struct worker *worker = run->worker;

        for (size_t i = 0; i < worker->watch_count; i++) {
                const struct record_watch *config = worker->watch[i].config;

                if (!config->related && strcmp(config->owner, run->watch->config->name) == 0 &&
                    strcmp(config->api_version, api_version) == 0 && strcmp(config->kind, kind) == 0)
                        return &worker->watch[i];
        }
        return NULL;
}

/* The version up to which the store is complete in this namespace; 0 if no list is complete. */
static struct store_progress progress_of(const struct worker_watch *watch, const char *namespace_name)
{
        struct store_progress progress = {0};

        if (store_read_progress(watch->reader, namespace_name, &progress) < 0 && namespace_name[0])
                (void)store_read_progress(watch->reader, "", &progress); /* one stream of all namespaces */
        return progress;
}

/* ---- what the former run has written */

static bool span_equals(struct span span, const char *text)
{
        return strlen(text) == span.size && memcmp(span.start, text, span.size) == 0;
}

static uint64_t newest_of(struct span versions)
{
        uint64_t version, newest = 0;
        bool deleted;

        while (child_kind_next_version(&versions, &version, &deleted))
                if (!deleted && version > newest)
                        newest = version;
        return newest;
}

/* Whether its versions can be compared with what the store has now. */
static bool is_comparable(const struct worker_watch *watch, const struct child_kind *entry,
                          struct store_progress *ret)
{
        _cleanup_free_ char *place = strndup(entry->namespace_name.start, entry->namespace_name.size);

        *ret = place ? progress_of(watch, place) : (struct store_progress){0};
        return ret->epoch == entry->epoch;
}

bool child_versions_are_missed(const struct run *run, const struct record_watch *owned,
                               const char *namespace_name)
{
        const struct worker_watch *watch = find_store(run, owned->api_version, owned->kind);
        const char *at = run->order->kinds;
        struct store_progress progress;
        struct child_kind entry;
        bool missed = false;

        while (watch && !missed && child_kinds_next(&at, &entry))
                missed = entry.versions.size > 0 && child_kind_is(&entry, owned->api_version, owned->kind) &&
                         (!namespace_name || span_equals(entry.namespace_name, namespace_name)) &&
                         is_comparable(watch, &entry, &progress) &&
                         progress.version < newest_of(entry.versions);
        return missed;
}

bool child_versions_are_behind(const struct run *run)
{
        const struct worker *worker = run->worker;

        if (!strchr(run->order->kinds, '='))
                return false;
        for (size_t i = 0; i < worker->watch_count; i++) {
                const struct record_watch *config = worker->watch[i].config;

                if (!config->related && strcmp(config->owner, run->watch->config->name) == 0 &&
                    child_versions_are_missed(run, config, NULL))
                        return true;
        }
        return false;
}

bool child_versions_deleted(const struct run *run, const struct record_watch *owned, const char *version)
{
        const struct worker_watch *watch = find_store(run, owned->api_version, owned->kind);
        const char *at = run->order->kinds;
        struct store_progress progress;
        struct child_kind entry;

        if (!watch)
                return false;
        while (child_kinds_next(&at, &entry))
                if (child_kind_is(&entry, owned->api_version, owned->kind) &&
                    child_kind_has(&entry, resource_version_number(version), true) &&
                    is_comparable(watch, &entry, &progress))
                        return true;
        return false;
}

/* ---- for DONE */

#define FORMER_DELETED_MAX 32

/* Appends one; the first one begins the list. */
static void print_version(struct text *out, uint64_t epoch, uint64_t version, bool deleted, size_t *count)
{
        if (*count == CHILD_VERSIONS_MAX)
                return;
        if ((*count)++ == 0)
                text_printf(out, "=%" PRIu64 ":", epoch);
        else
                text_append_string(out, ".");
        text_printf(out, "%s%" PRIu64, deleted ? "-" : "", version);
}

/* A newer version in the store is believed anyway; only deletions cannot be recognized that way. */
static void print_former(const struct run *run, const char *api_version, const char *kind,
                         const char *namespace_name, const struct store_progress *progress, struct text *out,
                         size_t *count)
{
        const char *at = run->order->kinds;
        size_t deletions = 0;
        struct child_kind entry;
        uint64_t version;
        bool deleted;

        while (child_kinds_next(&at, &entry))
                if (child_kind_is(&entry, api_version, kind) && entry.epoch == progress->epoch &&
                    span_equals(entry.namespace_name, namespace_name))
                        while (child_kind_next_version(&entry.versions, &version, &deleted))
                                if (deleted ? deletions++ < FORMER_DELETED_MAX : version > progress->version)
                                        print_version(out, progress->epoch, version, deleted, count);
}

void child_versions_print(const struct run *run, const char *api_version, const char *kind,
                          const char *namespace_name, struct text *out)
{
        const struct worker_watch *watch = find_store(run, api_version, kind);
        struct store_progress progress =
                watch ? progress_of(watch, namespace_name) : (struct store_progress){0};
        size_t count = 0;

        text_printf(out, "%s%s/%s%s%s", out->size > 0 && out->data[out->size - 1] != '?' ? "," : "",
                    api_version, kind, namespace_name[0] ? "@" : "", namespace_name);
        if (progress.epoch == 0)
                return;
        FOREACH_ARRAY(known, run->versions.item, run->versions.count)
                if (known->owned == watch->config && strcmp(known->namespace_name, namespace_name) == 0)
                        print_version(out, progress.epoch, known->version, known->deleted, &count);
        print_former(run, api_version, kind, namespace_name, &progress, out, &count);
}

static bool is_printed(const struct text *out, const char *api_version, const char *kind,
                       const char *namespace_name)
{
        const char *at = out->data ? out->data : "";
        struct child_kind entry;

        while (child_kinds_next(&at, &entry))
                if (child_kind_is(&entry, api_version, kind) &&
                    span_equals(entry.namespace_name, namespace_name))
                        return true;
        return false;
}

static bool has_deleted(const struct child_kind *entry)
{
        return entry->versions.size > 0 && memchr(entry->versions.start, '-', entry->versions.size);
}

void child_versions_print_former(const struct run *run, bool deleted, struct text *out)
{
        const char *at = run->order->kinds;
        struct child_kind entry;

        while (child_kinds_next(&at, &entry)) {
                _cleanup_free_ char *api_version = strndup(entry.api_version.start, entry.api_version.size),
                                    *kind = strndup(entry.kind.start, entry.kind.size),
                                    *place = strndup(entry.namespace_name.start, entry.namespace_name.size);

                if (api_version && kind && place && (!deleted || has_deleted(&entry)) &&
                    !is_printed(out, api_version, kind, place))
                        child_versions_print(run, api_version, kind, place, out);
        }
        FOREACH_ARRAY(known, run->versions.item, run->versions.count)
                if (known->deleted &&
                    !is_printed(out, known->owned->api_version, known->owned->kind, known->namespace_name))
                        child_versions_print(run, known->owned->api_version, known->owned->kind,
                                             known->namespace_name, out);
}

bool child_versions_are_news(const struct run *run)
{
        return run->versions.unknown || run->versions.count > 0 ||
               child_kinds_are_unknown(run->order->kinds);
}
