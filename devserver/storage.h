/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the devserver knows: resources (kinds), their objects as serialized JSON, one global resourceVersion,
 * and a bounded history of events. Versions of objects are shared by reference: object table, history,
 * watches and snapshots of paged lists all point to the same bytes. One thread, no locks.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* An immutable version of an object. */
struct version {
        unsigned references;
        uint64_t resource_version;
        char *key; /* "namespace/name" or "name" */
        char *namespace_name, *name;
        char *json; /* with apiVersion and kind first */
        size_t size;
        size_t bare_offset; /* where the JSON without apiVersion and kind begins, for lists of built-in kinds
                             */
};

struct version *version_ref(struct version *version);
void version_unref(struct version *version);
cJSON *version_parse(const struct version *version); /* owned by the caller */

struct resource {
        struct resource *next;
        char *group, *version, *kind, *plural, *singular, *list_kind;
        char *short_name; /* or "" */
        bool namespaced, status_subresource, builtin, removed;
        struct version **object; /* sorted by key */
        size_t count, allocated;
};

enum event_type { EVENT_ADDED, EVENT_MODIFIED, EVENT_DELETED };

struct event {
        uint64_t resource_version;
        enum event_type type;
        struct resource *resource;
        struct version *object, *previous; /* previous: NULL for ADDED */
};

struct watch;

struct storage {
        struct resource *resource;
        uint64_t resource_version;
        struct event *history; /* ring */
        size_t history_size, history_first, history_count;
        uint64_t history_lost; /* resourceVersion of the newest event that was dropped */
        void (*on_event)(const struct event *event, void *userdata);
        void *userdata;
};

int storage_init(struct storage *storage, size_t history_size);
void storage_done(struct storage *storage);

struct resource *resource_add(struct storage *storage, const char *group, const char *version,
                              const char *kind, const char *plural, bool namespaced, bool status_subresource,
                              bool builtin);
struct resource *resource_find(struct storage *storage, const char *group, const char *version,
                               const char *plural);
struct resource *resource_find_kind(struct storage *storage, const char *api_version, const char *kind);
void resource_remove(struct storage *storage,
                     struct resource *resource);             /* objects are deleted with events */
char *resource_api_version(const struct resource *resource); /* owned by the caller */

struct version *object_find(const struct resource *resource, const char *key); /* borrowed */
/* Stores `object` (whose metadata.resourceVersion is set here) as the newest version, or removes it; makes
 * an event. The result is borrowed from the table (for a removal: from the history, valid until the next
 * call). */
struct version *object_put(struct storage *storage, struct resource *resource, const char *key,
                           cJSON *object);
struct version *object_remove(struct storage *storage, struct resource *resource, const char *key,
                              cJSON *last);
size_t object_lower_bound(const struct resource *resource, const char *key);
char *object_key(const char *namespace_name, const char *name);
