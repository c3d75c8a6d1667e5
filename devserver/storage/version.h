/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An immutable version of an object, as serialized JSON. It is shared by reference: object table, history,
 * watches and snapshots of paged lists all point to the same bytes. One thread, no locks.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct resource;

/* An object's reference to its owner; it is in the index by the owner's UID while the object's version is
 * the newest. */
struct owner_reference {
        struct owner_reference *next, **place; /* NULL: not in the index */
        struct resource *resource;             /* of the dependent */
        struct version *version;
        char *uid;
        bool blocks; /* blockOwnerDeletion */
};

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

/* Serializes `object`, which must carry its resourceVersion, and is put into order. One reference; NULL: no
 * memory. */
struct version *version_new(const char *key, cJSON *object, uint64_t resource_version, bool builtin);
struct version *version_ref(struct version *version); /* NULL stays NULL */
void version_unref(struct version *version);
cJSON *version_parse(const struct version *version); /* owned by the caller; NULL: no memory */
/* A copy under another resourceVersion; NULL: no memory. */
struct version *version_at(const struct version *version, uint64_t resource_version);

/* Sets metadata.resourceVersion. 0 or -ENOMEM. */
int version_stamp(cJSON *object, uint64_t resource_version);
/* Whether the text is one: digits, or nothing. */
bool version_is_number(const char *text);
