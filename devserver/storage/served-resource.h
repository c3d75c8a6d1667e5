/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A kind in one of its versions, and the table of its objects. */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "devserver/storage/version.h"

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

/* Served, without objects; table: itself. NULL: no memory. */
struct resource *resource_new(const char *group, const char *version, const char *kind, const char *plural,
                              bool namespaced, bool status_subresource, bool builtin);
void resource_free(struct resource *resource);
/* Copies of what a CustomResourceDefinition says about names and columns; NULL: as the kind says. */
void resource_describe(struct resource *resource, const cJSON *names, const cJSON *columns,
                       const cJSON *schema);
char *resource_api_version(const struct resource *resource); /* owned by the caller */
/* Converts an object of the kind to this version. 0 or -ENOMEM. */
int resource_convert(cJSON *object, const struct resource *resource);
/* The object with the apiVersion of this version, in which the kind is served. Owned by the caller; NULL: no
 * memory. */
cJSON *version_parse_as(const struct version *version, const struct resource *resource);

char *object_key(const char *namespace_name, const char *name); /* owned by the caller; NULL: no memory */
struct version *object_find(const struct resource *resource, const char *key); /* borrowed; NULL: none */
/* Whether the object with this key is at this place. */
bool object_is_at(const struct resource *resource, size_t index, const char *key);
/* The place of the first object whose key is not before this one. */
size_t object_lower_bound(const struct resource *resource, const char *key);
/* The objects of one namespace ("": all) are at [*ret_begin, *ret_end). */
void object_range(const struct resource *resource, const char *namespace_name, size_t *ret_begin,
                  size_t *ret_end);
