/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schemas against the rules for structural schemas, in the words of apiextensions-apiserver. Each pass
 * relies on what those before it have found in order: what can be decoded, what is supported, what is
 * structural, the defaults.
 */
#include "devserver/schema/schema-check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/schema/schema-fit.h"
#include "devserver/schema/schema-mistakes.h"
#include "devserver/schema/schema-pattern.h"
#include "devserver/schema/schema-validate.h"
#include "devserver/tree/tree.h"
#include "json/json.h"

#define DEPTH_MAX 1000 /* a real server takes some 3,000 */

struct check {
        struct schema_report *report;
        const char *prefix, *sent_prefix;
        bool unsupported;
};

/* ---- what can be decoded */

/* From SCHEMA on they hold schemas. */
enum kind {
        TEXT,
        BOOLEAN,
        NUMBER,
        INTEGER,
        TEXTS,
        LIST,
        OBJECT,
        ANY,
        SCHEMA,
        SCHEMAS,
        SCHEMA_MAP,
        EITHER,
        NONE
};

/* words: each between blanks. */
static bool has_word(const char *words, const char *name)
{
        char word[64];

        snprintf(word, sizeof(word), " %.60s ", name);
        return !strchr(name, ' ') && strstr(words, word);
}

static enum kind kind_of(const char *name)
{
        static const char *const names[] = {
                [TEXT] = (" $ref $schema description format id pattern title type x-kubernetes-list-type "
                          "x-kubernetes-map-type "),
                [BOOLEAN] =
                        (" exclusiveMaximum exclusiveMinimum nullable uniqueItems x-kubernetes-embedded-resource "
                         "x-kubernetes-int-or-string x-kubernetes-preserve-unknown-fields "),
                [NUMBER] = " maximum minimum multipleOf ",
                [INTEGER] = " maxItems maxLength maxProperties minItems minLength minProperties ",
                [TEXTS] = " required x-kubernetes-list-map-keys ",
                [LIST] = " enum x-kubernetes-validations ",
                [OBJECT] = " dependencies externalDocs ",
                [ANY] = " default example ",
                [SCHEMA] = " not ",
                [SCHEMAS] = " allOf anyOf oneOf ",
                [SCHEMA_MAP] = " definitions patternProperties properties ",
                [EITHER] = " additionalItems additionalProperties items ",
        };
        enum kind kind = TEXT;

        while (kind < NONE && !has_word(names[kind], name))
                kind++;
        return kind;
}

static bool all_are(const cJSON *list, bool texts)
{
        const cJSON *item;

        cJSON_ArrayForEach(item, list)
        {
                if (texts ? !cJSON_IsString(item) : !cJSON_IsObject(item))
                        return false;
        }
        return true;
}

static bool is_of_kind(const cJSON *value, enum kind kind)
{
        double number = json_number(value, NAN);

        switch (kind) {
        case TEXT:
                return cJSON_IsString(value);
        case BOOLEAN:
                return cJSON_IsBool(value);
        case NUMBER:
                return json_is_number(value);
        case INTEGER:
                return number >= trunc(number) && number <= trunc(number) && fabs(number) < 9e18;
        case LIST:
                return cJSON_IsArray(value);
        case TEXTS:
        case SCHEMAS:
                return cJSON_IsArray(value) && all_are(value, kind == TEXTS);
        case SCHEMA_MAP:
                return cJSON_IsObject(value) && all_are(value, false);
        case EITHER:
                return cJSON_IsObject(value) || cJSON_IsBool(value) ||
                       (cJSON_IsArray(value) && all_are(value, false));
        case SCHEMA:
        case OBJECT:
                return cJSON_IsObject(value);
        default:
                return true;
        }
}

typedef void (*visit_t)(struct check *check, cJSON *schema, const struct step *step, size_t depth);
static void decode(struct check *check, cJSON *schema, const struct step *step, size_t depth);

/* Visits the schemas in a schema. The way to one has brackets, but not where keywords are reported as they
 * were sent. */
static void visit_inner(struct check *check, cJSON *schema, const struct step *step, size_t depth,
                        visit_t visit)
{
        cJSON *member, *inner;

        cJSON_ArrayForEach(member, schema)
        {
                enum kind kind = kind_of(member->string);
                struct step here = step_member(step, member->string), in = here;
                size_t index = 0;

                if (kind < SCHEMA || kind == NONE)
                        continue;
                if (cJSON_IsObject(member) && kind != SCHEMA_MAP) {
                        visit(check, member, &here, depth + 1);
                        continue;
                }
                cJSON_ArrayForEach(inner, member)
                {
                        in = inner->string ? step_key(&here, inner->string) : step_element(&here, index++);
                        in.is_key = visit != decode;
                        visit(check, inner, &in, depth + 1);
                }
        }
}

static void decode(struct check *check, cJSON *schema, const struct step *step, size_t depth)
{
        char *undecodable = check->report->undecodable;
        cJSON *member = schema->child, *next;

        if (depth > DEPTH_MAX)
                snprintf(undecodable, sizeof(check->report->undecodable), "the schema is nested too deeply");
        for (; member && !undecodable[0]; member = next) {
                enum kind kind = kind_of(member->string);
                struct step here = step_member(step, member->string);
                _cleanup_free_ char *way = is_of_kind(member, kind) && kind != NONE
                                                   ? NULL
                                                   : step_describe(check->sent_prefix, &here);

                next = member->next;
                if (kind == NONE && way && cJSON_GetArraySize(check->report->unknown) < MISTAKES_MAX)
                        cJSON_AddItemToArray(check->report->unknown, cJSON_CreateString(way));
                if (kind == NONE || cJSON_IsNull(member))
                        cJSON_Delete(cJSON_DetachItemViaPointer(schema, member));
                else if (way)
                        snprintf(undecodable, sizeof(check->report->undecodable),
                                 "json: cannot unmarshal %.300s: it has another type", way);
        }
        if (!undecodable[0])
                visit_inner(check, schema, step, depth, decode);
}

/* ---- what is supported */

/* About the keyword `name` of the schema at `step`; NULL: about the schema. */
static void tell(struct check *check, enum mistake_type type, const struct step *step, const char *name,
                 const cJSON *value, const char *format, ...) _printf_(6, 7);

static void tell(struct check *check, enum mistake_type type, const struct step *step, const char *name,
                 const cJSON *value, const char *format, ...)
{
        struct step here = step_member(step, name);
        _cleanup_free_ char *field = step_describe(check->prefix, name ? &here : step),
                            *text = value ? value_describe(value) : NULL;
        _cleanup_text_ struct text detail = TEXT_EMPTY;
        va_list arguments;

        va_start(arguments, format);
        text_vprintf(&detail, format, arguments);
        va_end(arguments);
        mistake_add(check->report->mistakes, type, field, text, "%s", detail.data ? detail.data : "");
}

/* It is there, and says more than its absence. */
static const cJSON *set_keyword(const cJSON *schema, const char *name)
{
        const cJSON *value = schema_keyword(schema, name);

        if (cJSON_IsFalse(value) || ((cJSON_IsArray(value) || cJSON_IsObject(value)) && !value->child))
                return NULL;
        return cJSON_IsString(value) && !value->valuestring[0] ? NULL : value;
}

static bool has_text(const cJSON *schema, const char *name, const char *text)
{
        return strcmp(json_text(schema, name), text) == 0;
}

static bool has_item(const cJSON *list, const char *text)
{
        const cJSON *item;

        cJSON_ArrayForEach(item, list)
        {
                if (strcmp(item->valuestring, text) == 0)
                        return true;
        }
        return false;
}

static void check_keys(struct check *check, const cJSON *schema, const struct step *step)
{
        static const char keys_name[] = "x-kubernetes-list-map-keys";
        const cJSON *keys = set_keyword(schema, keys_name), *key, *items = schema_keyword(schema, "items");
        struct step of_items = step_member(step, "items"), at = step_member(&of_items, "properties");

        if (!keys)
                tell(check, MISTAKE_REQUIRED, step, keys_name, NULL,
                     "must not be empty if x-kubernetes-list-type is map");
        if (items && !has_text(items, "type", "object")) {
                tell(check, MISTAKE_INVALID, &of_items, "type", schema_keyword(items, "type"),
                     "must be object if parent array's x-kubernetes-list-type is map");
                return;
        }
        cJSON_ArrayForEach(key, keys)
        {
                const cJSON *property =
                        schema_keyword(schema_keyword(items, "properties"), key->valuestring);
                struct step of_key = step_key(&at, key->valuestring);

                if (!property)
                        tell(check, MISTAKE_INVALID, step, keys_name, keys,
                             "entries must all be names of item properties");
                else if (!has_item(schema_keyword(items, "required"), key->valuestring) &&
                         !schema_keyword(property, "default"))
                        tell(check, MISTAKE_REQUIRED, &of_key, "default", NULL,
                             "this property is in x-kubernetes-list-map-keys, so it must have a default or be a "
                             "required property");
        }
}

static void check_list_type(struct check *check, const cJSON *schema, const struct step *step)
{
        static const char name[] = "x-kubernetes-list-type";
        const cJSON *list_type = schema_keyword(schema, name), *type = set_keyword(schema, "type");
        const cJSON *items = schema_keyword(schema, "items"), null = {.type = cJSON_NULL};
        bool is_set = has_text(schema, name, "set"), is_map = has_text(schema, name, "map");
        struct step of_items = step_member(step, "items");

        if (list_type && !has_text(schema, "type", "array"))
                tell(check, type ? MISTAKE_INVALID : MISTAKE_REQUIRED, step, "type", type,
                     "must be array if x-kubernetes-list-type is specified");
        else if (is_set && has_text(items, "type", "object") &&
                 !has_text(items, "x-kubernetes-map-type", "atomic"))
                tell(check, MISTAKE_INVALID, &of_items, "x-kubernetes-map-type", &null,
                     "must be atomic as item of a list with x-kubernetes-list-type=set");
        if (list_type && !is_set && !is_map && !has_text(schema, name, "atomic"))
                tell(check, MISTAKE_NOT_SUPPORTED, step, name, list_type,
                     "supported values: \"atomic\", \"set\", \"map\"");
        if (set_keyword(schema, "x-kubernetes-list-map-keys") && !is_map)
                tell(check, list_type ? MISTAKE_INVALID : MISTAKE_REQUIRED, step, name, list_type,
                     "must be map if x-kubernetes-list-map-keys is non-empty");
        if (is_map)
                check_keys(check, schema, step);
}

static void check_type(struct check *check, const cJSON *schema, const struct step *step)
{
        static const char *const types[] = {"array", "boolean", "integer", "number", "object", "string", ""};
        const cJSON *type = set_keyword(schema, "type");
        bool known = false;

        for (size_t i = 0; i < ELEMENTS(types); i++)
                known = known || has_text(schema, "type", types[i]);
        if (!known)
                tell(check, MISTAKE_NOT_SUPPORTED, step, "type", type,
                     "supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"");
        if (has_text(schema, "type", "null"))
                tell(check, MISTAKE_FORBIDDEN, step, "type", NULL,
                     "type cannot be set to null, use nullable as an alternative");
}

/* What makes a schema one that cannot be structural at all is reported without what follows from it. */
static void check_supported(struct check *check, cJSON *schema, const struct step *step, size_t depth)
{
        static const char *const unsupported[] = {"id",          "additionalItems", "patternProperties",
                                                  "definitions", "dependencies",    "$ref"};
        static const char preserve[] = "x-kubernetes-preserve-unknown-fields";
        const cJSON *others = schema_keyword(schema, "additionalProperties");

        for (size_t i = 0; i < ELEMENTS(unsupported); i++)
                if (schema_keyword(schema, unsupported[i])) {
                        tell(check, MISTAKE_FORBIDDEN, step, unsupported[i], NULL, "%s is not supported",
                             unsupported[i]);
                        check->unsupported = true;
                }
        if (cJSON_IsArray(schema_keyword(schema, "items"))) {
                tell(check, MISTAKE_FORBIDDEN, step, "items", NULL,
                     "items must be a schema object and not an array");
                check->unsupported = true;
        }
        if (cJSON_IsFalse(schema_keyword(schema, preserve))) {
                tell(check, MISTAKE_INVALID, step, preserve, schema_keyword(schema, preserve),
                     "must be true or undefined");
                check->unsupported = true;
        }
        if (schema_is(schema, "uniqueItems"))
                tell(check, MISTAKE_FORBIDDEN, step, "uniqueItems", NULL,
                     "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
        if (others && !cJSON_IsTrue(others) && set_keyword(schema, "properties"))
                tell(check, MISTAKE_FORBIDDEN, step, "additionalProperties", NULL,
                     "additionalProperties and properties are mutual exclusive");
        check_type(check, schema, step);
        if (!check->unsupported)
                check_list_type(check, schema, step);
        if (set_keyword(schema, "x-kubernetes-validations"))
                check->report->rules = true;
        visit_inner(check, schema, step, depth, check_supported);
}

/* ---- what is structural */

/* The two ways in which int-or-string may be spelt out: types are allowed there alone. */
static bool is_int_or_string(const cJSON *any_of)
{
        const cJSON *first = any_of ? any_of->child : NULL, *second = first ? first->next : NULL;

        return second && !second->next && cJSON_GetArraySize(first) == 1 &&
               cJSON_GetArraySize(second) == 1 && has_text(first, "type", "integer") &&
               has_text(second, "type", "string");
}

static void check_pattern(struct check *check, const cJSON *schema, const struct step *step)
{
        const char *mistake;
        char text[300];

        if (!set_keyword(schema, "pattern"))
                return;
        mistake = pattern_mistake(json_text(schema, "pattern"), text, sizeof(text));
        if (mistake)
                tell(check, MISTAKE_INVALID, step, "pattern", schema_keyword(schema, "pattern"),
                     "must be a valid regular expression, but isn't: %s", mistake);
}

static void check_combined(struct check *check, const cJSON *schema, const struct step *step,
                           bool may_spell_out);

/* A schema that is combined with others says what values may be, not what there is. */
static void check_part(struct check *check, const cJSON *part, const struct step *step, bool may_spell_out)
{
        static const struct {
                const char *name, *text;
        } forbidden[] = {
                {"type", "empty"},
                {"title", "empty"},
                {"description", "empty"},
                {"x-kubernetes-list-map-keys", "empty"},
                {"x-kubernetes-validations", "empty"},
                {"default", "undefined"},
                {"additionalProperties", "undefined"},
                {"x-kubernetes-list-type", "undefined"},
                {"x-kubernetes-map-type", "undefined"},
                {"nullable", "false"},
                {"x-kubernetes-preserve-unknown-fields", "false"},
                {"x-kubernetes-embedded-resource", "false"},
                {"x-kubernetes-int-or-string", "false"},
        };
        const cJSON *items = schema_keyword(part, "items"), *property;
        struct step of_items = step_member(step, "items"), at = step_member(step, "properties");

        for (size_t i = 0; i < ELEMENTS(forbidden); i++)
                if (set_keyword(part, forbidden[i].name))
                        tell(check, MISTAKE_FORBIDDEN, step, forbidden[i].name, NULL,
                             "must be %s to be structural", forbidden[i].text);
        check_pattern(check, part, step);
        check_combined(check, part, step, may_spell_out);
        if (items)
                check_part(check, items, &of_items, false);
        cJSON_ArrayForEach(property, schema_keyword(part, "properties"))
        {
                struct step here = step_key(&at, property->string);

                check_part(check, property, &here, false);
        }
}

/* may_spell_out: what is spelt out as int-or-string may be here, or in the first of allOf. */
static void check_combined(struct check *check, const cJSON *schema, const struct step *step,
                           bool may_spell_out)
{
        static const char *const combinations[] = {"anyOf", "allOf", "oneOf", "not"};

        for (size_t i = 0; i < ELEMENTS(combinations); i++) {
                const cJSON *list = schema_keyword(schema, combinations[i]), *part;
                struct step at = step_member(step, combinations[i]);
                size_t index = 0;

                if (cJSON_IsObject(list))
                        check_part(check, list, &at, false);
                if (cJSON_IsObject(list) || (i == 0 && may_spell_out && is_int_or_string(list)))
                        continue;
                cJSON_ArrayForEach(part, list)
                {
                        struct step here = step_element(&at, index++);

                        check_part(check, part, &here, may_spell_out && i == 1 && index == 1);
                }
        }
}

/* In the metadata, a definition can restrict the name alone. */
static void check_metadata(struct check *check, const cJSON *metadata)
{
        struct step at = step_member(NULL, "properties"), here = step_key(&at, "metadata");
        const cJSON *member;
        bool others = false;

        cJSON_ArrayForEach(member, metadata)
        {
                others = others || !has_word(" type default description properties ", member->string);
        }
        cJSON_ArrayForEach(member, schema_keyword(metadata, "properties"))
        {
                others = others || !has_word(" name generateName ", member->string);
        }
        if (metadata && !has_text(metadata, "type", "object"))
                tell(check, MISTAKE_INVALID, &here, "type", schema_keyword(metadata, "type"),
                     "must be object");
        if (schema_keyword(metadata, "default"))
                tell(check, MISTAKE_FORBIDDEN, &here, "default", NULL,
                     "must not be set in top-level metadata");
        if (others)
                tell(check, MISTAKE_FORBIDDEN, &here, NULL, NULL,
                     "must not specify anything other than name and generateName, but metadata is implicitly "
                     "specified");
}

/* what: names the schema in a message about its type: the root, items or fields. */
static void check_structure(struct check *check, const cJSON *schema, const struct step *step,
                            const char *what)
{
        const cJSON *items = schema_keyword(schema, "items"), *others, *property;
        const cJSON *type = set_keyword(schema, "type");
        bool is_root = !step;
        struct step of_items = step_member(step, "items"), at = step_member(step, "properties"),
                    of_others = step_member(step, "additionalProperties");

        if (has_text(schema, "type", "array") && !items)
                tell(check, MISTAKE_REQUIRED, step, "items", NULL, "must be specified");
        if (!type && !schema_is(schema, "x-kubernetes-int-or-string") &&
            !schema_is(schema, "x-kubernetes-preserve-unknown-fields"))
                tell(check, MISTAKE_REQUIRED, step, "type", NULL, "must not be empty %s", what);
        if (is_root && type && !has_text(schema, "type", "object"))
                tell(check, MISTAKE_INVALID, step, "type", type, "must be object at the root");
        others = schema_keyword(schema, "additionalProperties");
        if (is_root && others)
                tell(check, MISTAKE_FORBIDDEN, step, "additionalProperties", NULL,
                     "must not be used at the root");
        check_pattern(check, schema, step);
        check_combined(check, schema, step, true);
        if (is_root)
                check_metadata(check, schema_keyword(schema_keyword(schema, "properties"), "metadata"));
        if (items)
                check_structure(check, items, &of_items, "for specified array items");
        if (cJSON_IsObject(others))
                check_structure(check, others, &of_others, "for specified object fields");
        cJSON_ArrayForEach(property, schema_keyword(schema, "properties"))
        {
                struct step here = step_key(&at, property->string);
                bool is_metadata = is_root && strcmp(property->string, "metadata") == 0;

                if (!is_metadata)
                        check_structure(check, property, &here, "for specified object fields");
        }
}

/* ---- defaults */

static void check_default(struct check *check, const cJSON *schema, const struct step *step)
{
        const cJSON *given = schema_keyword(schema, "default");
        bool embedded = schema_is(schema, "x-kubernetes-embedded-resource");
        struct step here = step_member(step, "default");
        _cleanup_free_ char *way = step_describe(check->prefix, &here);
        cJSON *pruned = given ? cJSON_Duplicate(given, true) : NULL;

        if (!pruned)
                return;
        schema_prune(pruned, schema, embedded, NULL);
        if (!json_equal(pruned, given))
                tell(check, MISTAKE_INVALID, step, "default", given, "must not have unknown fields");
        cJSON_Delete(pruned);
        schema_validate(given, NULL, schema, way, check->report->mistakes);
}

static void check_defaults(struct check *check, const cJSON *schema, const struct step *step)
{
        const cJSON *items = schema_keyword(schema, "items"), *property;
        struct step of_items = step_member(step, "items"), at = step_member(step, "properties");

        check_default(check, schema, step);
        if (items)
                check_defaults(check, items, &of_items);
        cJSON_ArrayForEach(property, schema_keyword(schema, "properties"))
        {
                struct step here = step_key(&at, property->string);

                check_defaults(check, property, &here);
        }
}

/* ---- all */

/* What a status, which is validated by itself, would be left out of. */
static void check_root(struct check *check, const cJSON *schema)
{
        static const char *const forbidden[] = {
                "allOf",   "anyOf",    "oneOf",         "not",           "enum",
                "default", "nullable", "minProperties", "maxProperties", "additionalProperties"};

        for (size_t i = 0; i < ELEMENTS(forbidden); i++)
                if (set_keyword(schema, forbidden[i])) {
                        tell(check, MISTAKE_INVALID, NULL, NULL, schema,
                             "%s is not allowed at the root of the schema if the status subresource is enabled",
                             forbidden[i]);
                        return;
                }
}

void schema_check(cJSON *schema, const char *prefix, const char *sent_prefix, bool status_subresource,
                  struct schema_report *report)
{
        struct check check = {.report = report, .prefix = prefix, .sent_prefix = sent_prefix};
        size_t before;

        decode(&check, schema, NULL, 0);
        if (report->undecodable[0])
                return;
        if (status_subresource)
                check_root(&check, schema);
        check_supported(&check, schema, NULL, 0);
        before = report->mistakes->count;
        if (!check.unsupported)
                check_structure(&check, schema, NULL, "at the root");
        if (!check.unsupported && report->mistakes->count == before)
                check_defaults(&check, schema, NULL);
}
