/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which lists are merged by what: told by a CustomResourceDefinition's schema (x-kubernetes-list-type and
 * its keys), or for the built-in kinds and every object's metadata by a table of the usual names. All other
 * lists are atomic.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#define LIST_KEYS_MAX 4

enum list_type { LIST_ATOMIC, LIST_SET, LIST_MAP };

/* A place in an object. */
struct place {
        const cJSON *schema; /* of the value here; NULL: nothing is known */
        const char *field;   /* the member's name; NULL at the root and in a list's element */
        bool builtin, root;
};

/* What the elements of one list are merged by. */
struct list_rule {
        enum list_type type;
        const char *key[LIST_KEYS_MAX]; /* of a map */
        size_t count;
};

struct place place_root(const cJSON *schema, bool builtin);
struct place place_member(struct place place, const char *name);
struct place place_element(struct place place);
/* For the list `value` that is there: atomic as well when its elements lack the keys. */
struct list_rule place_list_rule(struct place place, const cJSON *value);
bool place_is_atomic_map(struct place place);
/* The value of a key: an element of ports without a protocol is TCP's. Made; NULL: none. */
cJSON *element_key_value(const cJSON *element, const char *key);

/* The one key by which a strategic merge patch merges the list `field` ("" for a set), NULL: it is replaced.
 */
const char *strategic_merge_key(const char *field, const cJSON *list);
