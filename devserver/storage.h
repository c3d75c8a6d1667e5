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

/* That an object names an owner; in the index by the owner's UID while its version is the newest. */
struct owner_reference {
        struct owner_reference *next, **place; /* NULL: not in the index */
        struct resource *resource;             /* of the dependent */
        struct version *version;
        char *uid;
        bool blocks; /* blockOwnerDeletion */
};

/* An immutable version of an object. */
struct version {
        unsigned references;
        uint64_t resource_version;
        char *key; /* "namespace/name" or "name" */
        char *namespace_name, *name, *uid;
        bool deleting; /* has a deletionTimestamp */
        struct owner_reference *owner;
        size_t owner_count;
        bool builtin;
        char *json; /* as the server writes it (form.h) */
        size_t size;
        size_t bare_offset; /* where the JSON without apiVersion and kind begins, for lists of built-in kinds
                             */
        cJSON *labels;      /* so that selectors need not parse; NULL: none */
};

struct resource;

struct version *version_ref(struct version *version);
void version_unref(struct version *version);
cJSON *version_parse(const struct version *version); /* owned by the caller */
/* With the apiVersion of one of the versions in which the kind is served. */
cJSON *version_parse_as(const struct version *version, const struct resource *resource);
/* A copy under another resourceVersion. */
struct version *version_at(const struct version *version, uint64_t resource_version);

struct resource {
        struct resource *next;
        char *group, *version, *kind, *plural, *singular, *list_kind;
        struct resource *table;                /* whose objects these are: of the version that is stored */
        cJSON *short_name, *category, *column; /* lists as in the CRD, or NULL */
        cJSON *schema;                         /* openAPIV3Schema of its version, or NULL */
        /* removed: not served any more, or for now; dead: its CRD is deleted, it never comes back */
        bool namespaced, status_subresource, builtin, removed, dead;
        struct version **object; /* sorted by key */
        size_t count, allocated;
};

/* Who depends on whom, so that a deletion need not look at every object. */
struct owner_index {
        struct owner_reference **bucket;
        size_t size, count;
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
        struct owner_index owners;
        void (*on_event)(const struct event *event, void *userdata);
        void (*on_forget)(const struct event *event, void *userdata); /* it is about to leave the history */
        void *userdata;
};

int storage_init(struct storage *storage, size_t history_size);
void storage_done(struct storage *storage);

struct resource *resource_add(struct storage *storage, const char *group, const char *version,
                              const char *kind, const char *plural, bool namespaced, bool status_subresource,
                              bool builtin);
/* Copies of what a CustomResourceDefinition says about names and columns; NULL: as the kind says. */
void resource_describe(struct resource *resource, const cJSON *names, const cJSON *columns,
                       const cJSON *schema);
struct resource *resource_find(struct storage *storage, const char *group, const char *version,
                               const char *plural);
struct resource *resource_find_kind(struct storage *storage, const char *api_version, const char *kind);
char *resource_api_version(const struct resource *resource); /* owned by the caller */

struct version *object_find(const struct resource *resource, const char *key); /* borrowed */
/* Stores `object` (whose metadata.resourceVersion is set here) as the newest version, or removes it; makes
 * an event. The result is borrowed from the table (for a removal: from the history, valid until the next
 * call). */
struct version *object_put(struct storage *storage, struct resource *resource, const char *key,
                           cJSON *object);
struct version *object_remove(struct storage *storage, struct resource *resource, const char *key,
                              cJSON *last);
/* The event of that version, or NULL: not in the history, or still to come. */
const struct event *storage_event(const struct storage *storage, uint64_t resource_version);
/* Everything up to this version leaves the history: watches from before it are answered 410. */
void storage_compact(struct storage *storage, uint64_t version);
/* These objects in the place of all that the kind has, without events. */
int storage_replace(struct storage *storage, struct resource *resource, struct version *const *object,
                    size_t count);
size_t object_lower_bound(const struct resource *resource, const char *key);
/* The objects of one namespace ("": all) stand at [*ret_begin, *ret_end). */
void object_range(const struct resource *resource, const char *namespace_name, size_t *ret_begin,
                  size_t *ret_end);
char *object_key(const char *namespace_name, const char *name);

/* owners.c */
int owner_index_add(struct owner_index *index, struct resource *resource, struct version *version);
void owner_index_remove(struct owner_index *index, struct version *version);
/* The first or the next dependent of that owner; NULL when there is none. Valid until the next change. */
const struct owner_reference *owner_index_find(const struct owner_index *index, const char *uid,
                                               const struct owner_reference *after);
void owner_index_done(struct owner_index *index);
