/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The schema of a CustomResourceDefinition's version (structural, apiextensions/v1), as it was written, and what it does to
 * an object that is read. Each step costs time in proportion to what it looks at.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>

void schema_set_defaults(cJSON *object, const cJSON *schema);
/* Defaults; then goes what the schema does not know, and each null that it does not allow. unknown: a list to
 * which the ways to the unknown fields are added as text, or NULL. */
void schema_fit(cJSON *object, const cJSON *schema, cJSON *unknown);
/* Without the members that the schema does not know. embedded: apiVersion, kind and metadata stay. */
void schema_prune(cJSON *value, const cJSON *schema, bool embedded, cJSON *unknown);

/* ---- keywords */

/* The keyword's value; NULL: there is none, or it is null. */
const cJSON *schema_keyword(const cJSON *schema, const char *name);
bool schema_is(const cJSON *schema, const char *name); /* it is true */
/* The schema of a member: in `properties`, or else of all others. *ret_known: members of this name may be there.
 * NULL: nothing is said about its value. at: as json_member_from(). */
const cJSON *schema_of_member(const cJSON *schema, const char *name, const cJSON **at, bool *ret_known);
/* apiVersion, kind and metadata, which the schema of a resource leaves to the server. */
bool schema_is_left_out(const char *name);
