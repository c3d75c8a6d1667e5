/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the devserver knows: resources (kinds), their objects, one global resourceVersion, and a bounded
 * history of events.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devserver/storage/owners.h"
#include "devserver/storage/served-resource.h"

enum event_type { EVENT_ADDED, EVENT_MODIFIED, EVENT_DELETED };

struct event {
        uint64_t resource_version;
        enum event_type type;
        struct resource *resource;
        struct version *object, *previous; /* previous: NULL for ADDED */
};

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

/* history_size: how many events are kept. 0 or -ENOMEM. */
int storage_init(struct storage *storage, size_t history_size);
void storage_done(struct storage *storage);

/* As resource_new(), and served from now on. NULL: no memory. */
struct resource *resource_add(struct storage *storage, const char *group, const char *version,
                              const char *kind, const char *plural, bool namespaced, bool status_subresource,
                              bool builtin);
/* The resource, if it is served; else NULL. */
struct resource *resource_find(struct storage *storage, const char *group, const char *version,
                               const char *plural);
struct resource *resource_find_kind(struct storage *storage, const char *api_version, const char *kind);

/* Stores `object` as the newest version, and makes an event. The object stays the caller's; its resourceVersion
 * and apiVersion are set here. The result is borrowed from the table; NULL: no memory. */
struct version *object_put(struct storage *storage, struct resource *resource, const char *key,
                           cJSON *object);
/* Removes it, and makes an event with its last state, `last` (the caller's), or NULL for the one that is stored.
 * The result is borrowed from the history, valid until the next call; NULL: it is not there, or no memory. */
struct version *object_remove(struct storage *storage, struct resource *resource, const char *key,
                              cJSON *last);
/* The event of that version, or NULL: not in the history, or still to come. */
const struct event *storage_event(const struct storage *storage, uint64_t resource_version);
/* Everything up to this version leaves the history: watches from before it are answered 410. */
void storage_compact(struct storage *storage, uint64_t version);
/* These objects in the place of all that the kind has, without events. 0 or -ENOMEM. */
int storage_replace(struct storage *storage, struct resource *resource, struct version *const *object,
                    size_t count);
