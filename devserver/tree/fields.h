/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Field sets, in the FieldsV1 form of metadata.managedFields: a tree of cJSON objects with "f:name" for
 * members, "k:{...}" for elements of maps, "v:..." for elements of sets, "." for the node itself. A path
 * without children is a leaf: the value there is owned whole.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "devserver/tree/list-rule.h"

/* Clients may write managedFields: nothing else here takes what this does not accept. */
bool fields_are_valid(const cJSON *fields);
bool fields_is_leaf(const cJSON *fields);
/* The fields that a client can own in `object`: without what identifies it, and without what the server
 * maintains. */
cJSON *fields_of_object(const cJSON *object, struct place root);
cJSON *fields_owned_part(const cJSON *object);
/* The step to an element of a set or map; made. */
char *fields_element_path(const cJSON *element, const struct list_rule *rule);
/* The value that one step leads to, NULL when there is none. */
cJSON *fields_value_at(const cJSON *value, const char *path);
/* Writes the "field" of a conflict: prefix and one step, as the real server writes it. */
void fields_describe(const char *prefix, const char *path, char *out, size_t size);

/* Takes `taken` out of `fields`; what becomes empty goes. */
void fields_subtract(cJSON *fields, const cJSON *taken);
void fields_add(cJSON *fields, const cJSON *more);
/* Those of `fields` whose values differ between the two; `fields` is of `after`. */
cJSON *fields_changed(const cJSON *before, const cJSON *after, const cJSON *fields);
/* Drops those that `value` does not have. */
void fields_keep_existing(cJSON *fields, const cJSON *value);
