/* SPDX-License-Identifier: Apache-2.0 */
/* What the real server does to a custom resource when it decodes one: from a request, and from its database. */
#include "devserver/schema/schema-fit.h"

#include <stdlib.h>
#include <string.h>

#include "devserver/schema/schema-mistakes.h"
#include "json/json.h"

const cJSON *schema_keyword(const cJSON *schema, const char *name)
{
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(schema, name);

        return cJSON_IsNull(value) ? NULL : value;
}

bool schema_is(const cJSON *schema, const char *name)
{
        return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(schema, name));
}

const cJSON *schema_of_member(const cJSON *schema, const char *name, const cJSON **at, bool *ret_known)
{
        const cJSON *others = schema_keyword(schema, "additionalProperties");
        const cJSON *found = json_member_from(schema_keyword(schema, "properties"), name, at);

        *ret_known = found || (others && !cJSON_IsFalse(others));
        return found ? found : cJSON_IsObject(others) ? others : NULL;
}

bool schema_is_left_out(const char *name)
{
        return strcmp(name, "apiVersion") == 0 || strcmp(name, "kind") == 0 || strcmp(name, "metadata") == 0;
}

/* ---- defaults */

static bool is_forbidden_null(const cJSON *value, const cJSON *schema)
{
        return cJSON_IsNull(value) && schema && !schema_is(schema, "nullable");
}

/* Replaces a null that is not allowed by the default, if there is one. Returns the value that is there
 * then. */
static cJSON *replace_null(cJSON *parent, cJSON *value, const cJSON *schema)
{
        const cJSON *standard = schema_keyword(schema, "default");
        cJSON *copy = standard && is_forbidden_null(value, schema) ? cJSON_Duplicate(standard, true) : NULL;

        if (!copy)
                return value;
        if (value->string) {
                free(copy->string);
                copy->string = strdup(value->string);
        }
        cJSON_ReplaceItemViaPointer(parent, value, copy);
        return copy;
}

static void add_missing(cJSON *object, const cJSON *schema)
{
        const cJSON *properties = schema_keyword(schema, "properties"), *property, *at = NULL;

        cJSON_ArrayForEach(property, properties)
        {
                const cJSON *standard = schema_keyword(property, "default");

                if (standard && !json_member_from(object, property->string, &at))
                        cJSON_AddItemToObject(object, property->string, cJSON_Duplicate(standard, true));
        }
}

void schema_set_defaults(cJSON *object, const cJSON *schema)
{
        const cJSON *items = schema_keyword(schema, "items"), *at = NULL;
        bool known;

        if (!schema)
                return;
        if (cJSON_IsObject(object))
                add_missing(object, schema);
        for (cJSON *value = object->child; value; value = value->next) {
                const cJSON *inner =
                        value->string ? schema_of_member(schema, value->string, &at, &known) : items;

                value = replace_null(object, value, inner);
                schema_set_defaults(value, inner);
        }
}

/* ---- unknown fields */

static void tell_unknown(cJSON *unknown, const struct step *step)
{
        char *text =
                unknown && cJSON_GetArraySize(unknown) < MISTAKES_MAX ? step_describe(NULL, step) : NULL;

        if (text)
                cJSON_AddItemToArray(unknown, cJSON_CreateString(text));
        free(text);
}

/* keep: what is not known here; inside of what is known, all is as usual. */
static void prune(cJSON *value, const cJSON *schema, bool embedded, bool keep, const struct step *step,
                  cJSON *unknown)
{
        const cJSON *items = schema_keyword(schema, "items"), *at = NULL;
        cJSON *next;
        size_t index = 0;

        if (schema && schema_is(schema, "x-kubernetes-preserve-unknown-fields"))
                keep = true;
        if (keep && !schema)
                return;
        embedded = embedded || schema_is(schema, "x-kubernetes-embedded-resource");
        for (cJSON *child = value->child; child; child = next) {
                struct step here = cJSON_IsArray(value) ? step_element(step, index++)
                                                        : step_member(step, child->string);
                bool known = true;
                const cJSON *inner = here.name ? schema_of_member(schema, here.name, &at, &known) : items;

                next = child->next;
                if (here.name && embedded && schema_is_left_out(here.name))
                        continue;
                if (known)
                        prune(child, inner, false, keep && !here.name, &here, unknown);
                else if (!keep) {
                        tell_unknown(unknown, &here);
                        cJSON_Delete(cJSON_DetachItemViaPointer(value, child));
                }
        }
}

void schema_prune(cJSON *value, const cJSON *schema, bool embedded, cJSON *unknown)
{
        prune(value, schema, embedded, false, NULL, unknown);
}

/* ---- nulls */

static void drop_nulls(cJSON *value, const cJSON *schema)
{
        const cJSON *items = schema_keyword(schema, "items"), *at = NULL;
        cJSON *next;
        bool known;

        for (cJSON *child = schema ? value->child : NULL; child; child = next) {
                const cJSON *inner =
                        child->string ? schema_of_member(schema, child->string, &at, &known) : items;

                next = child->next;
                if (cJSON_IsObject(value) && is_forbidden_null(child, inner) &&
                    !schema_keyword(inner, "default"))
                        cJSON_Delete(cJSON_DetachItemViaPointer(value, child));
                else
                        drop_nulls(child, inner);
        }
}

void schema_fit(cJSON *object, const cJSON *schema, cJSON *unknown)
{
        schema_set_defaults(object, schema);
        schema_prune(object, schema, true, unknown);
        drop_nulls(object, schema);
}
