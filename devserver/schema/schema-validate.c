/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values against the schema, as k8s.io/kube-openapi does it, in its words. Each schema is held against a value once,
 * so that the time is in proportion to both. Of what has failed in anyOf and oneOf, those mistakes are
 * reported that come from the schema with the most matches, which are counted as there.
 */
#include "devserver/schema/schema-validate.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/schema/schema-fit.h"
#include "devserver/schema/schema-mistakes.h"
#include "devserver/schema/schema-pattern.h"
#include "devserver/tree/tree.h"
#include "json/json.h"

struct validation {
        const char *prefix;
        struct mistakes mistakes;
        unsigned matches;
};

/* A value, and its place. */
struct spot {
        const cJSON *value, *before; /* before: what was there; NULL: nothing that could be compared */
        const char *type;
        const struct step *step;
};

static void validate(struct validation *validation, const cJSON *schema, struct spot spot);

/* ---- mistakes */

/* "spec.size in body <detail>" about the field, which in a status is named without the prefix. */
static void mistake_of_schema(struct validation *validation, enum mistake_type type, const struct step *step,
                              const char *value, const char *format, ...) _printf_(5, 6);

static void mistake_of_schema(struct validation *validation, enum mistake_type type, const struct step *step,
                              const char *value, const char *format, ...)
{
        bool in_body = type == MISTAKE_INVALID || type == MISTAKE_TYPE_INVALID;
        _cleanup_free_ char *field = step_describe(validation->prefix, step),
                            *name = step_describe(NULL, step);
        _cleanup_text_ struct text detail = TEXT_EMPTY;
        va_list arguments;

        text_printf(&detail, "%s%s", in_body ? name : "", in_body ? " in body " : "");
        va_start(arguments, format);
        text_vprintf(&detail, format, arguments);
        va_end(arguments);
        mistake_add(&validation->mistakes, type, field && field[0] ? field : "<nil>", value, "%s",
                    detail.data ? detail.data : "");
}

static void wrong_type(struct validation *validation, const struct step *step, const char *wanted,
                       const char *given)
{
        _cleanup_free_ char *quoted = text_quote(given);

        mistake_of_schema(validation, MISTAKE_TYPE_INVALID, step, quoted, "must be of type %s: %s", wanted,
                          quoted);
}

/* What a combination of schemas says has no field of its own. */
static void wrong_whole(struct validation *validation, const struct step *step, const char *what)
{
        _cleanup_free_ char *name = step_describe(NULL, step), *quoted = name ? text_quote(name) : NULL;

        mistake_add(&validation->mistakes, MISTAKE_INVALID,
                    validation->prefix ? validation->prefix : "<nil>", "\"\"", "%s %s", quoted, what);
}

/* ---- scalars */

static const char *type_of(const cJSON *value)
{
        if (cJSON_IsNull(value))
                return "null";
        if (cJSON_IsBool(value))
                return "boolean";
        if (cJSON_IsArray(value))
                return "array";
        if (cJSON_IsObject(value))
                return "object";
        if (!json_is_number(value))
                return "string";
        return json_number(value, 0) < trunc(json_number(value, 0)) ||
                               json_number(value, 0) > trunc(json_number(value, 0))
                       ? "number"
                       : "integer";
}

static bool check_type(struct validation *validation, const cJSON *schema, const struct spot *spot)
{
        bool either = schema_is(schema, "x-kubernetes-int-or-string");
        const char *wanted = either ? "integer,string" : json_text(schema, "type");
        bool is_integer = strcmp(spot->type, "integer") == 0;
        bool fits = !wanted[0] || strcmp(wanted, spot->type) == 0 ||
                    (is_integer && strcmp(wanted, "number") == 0);

        if (cJSON_IsNull(spot->value))
                fits = !wanted[0] || schema_is(schema, "nullable");
        else if (either)
                fits = is_integer || strcmp(spot->type, "string") == 0;
        if (!fits)
                wrong_type(validation, spot->step, wanted, spot->type);
        return fits;
}

static void check_bound(struct validation *validation, const cJSON *schema, const struct spot *spot,
                        bool is_minimum)
{
        const cJSON *bound = schema_keyword(schema, is_minimum ? "minimum" : "maximum");
        bool exclusive = schema_is(schema, is_minimum ? "exclusiveMinimum" : "exclusiveMaximum");
        double number = json_number(spot->value, 0), limit = json_number(bound, 0);
        double beyond = is_minimum ? limit - number : number - limit;
        _cleanup_free_ char *value = NULL, *text = NULL;

        if (!bound || beyond < 0 || (!exclusive && beyond <= 0))
                return;
        value = value_describe(spot->value);
        text = value_describe(bound);
        mistake_of_schema(validation, MISTAKE_INVALID, spot->step, value, "should be %s %s%s",
                          is_minimum ? "greater than" : "less than", exclusive ? "" : "or equal to ", text);
}

static void check_multiple(struct validation *validation, const cJSON *schema, const struct spot *spot)
{
        const cJSON *factor = schema_keyword(schema, "multipleOf");
        double quotient = json_number(spot->value, 0) / json_number(factor, 1);
        _cleanup_free_ char *value = NULL, *text = NULL;

        if (!factor || fabs(quotient - trunc(quotient + 0.5)) <= 1e-9 * (1 + fabs(quotient)))
                return;
        value = value_describe(spot->value);
        text = value_describe(factor);
        mistake_of_schema(validation, MISTAKE_INVALID, spot->step, value, "should be a multiple of %s",
                          text);
}

/* -1: there is no such bound. */
static long bound_of(const cJSON *schema, const char *name)
{
        double bound = json_number(schema_keyword(schema, name), -1);

        return bound < (double)LONG_MAX ? (long)bound : LONG_MAX;
}

static long character_count(const char *text)
{
        long count = 0;

        for (; *text; text++)
                count += ((unsigned char)*text & 0xc0) != 0x80 ? 1 : 0;
        return count;
}

/* A text with a NUL in it (raw) is not looked into. */
static void check_string(struct validation *validation, const cJSON *schema, const struct spot *spot)
{
        long most = bound_of(schema, "maxLength"), least = bound_of(schema, "minLength");
        const char *pattern = json_text(schema, "pattern");
        const char *text = cJSON_IsString(spot->value) ? spot->value->valuestring : "";
        const char *format = json_text(schema, "format");
        _cleanup_free_ char *value = text_quote(text);
        long count = character_count(text);

        if (!cJSON_IsString(spot->value))
                return;
        if (most >= 0 && count > most)
                mistake_of_schema(validation, MISTAKE_TOO_LONG, spot->step, NULL,
                                  "may not be more than %ld byte%s", most, most == 1 ? "" : "s");
        else if (count < least)
                mistake_of_schema(validation, MISTAKE_INVALID, spot->step, value,
                                  "should be at least %ld chars long", least);
        else if (pattern[0] && !pattern_matches(pattern, text))
                mistake_of_schema(validation, MISTAKE_INVALID, spot->step, value, "should match '%s'",
                                  pattern);
        if (!format_matches(format, text))
                wrong_type(validation, spot->step, format, text);
}

static bool is_same(const cJSON *a, const cJSON *b)
{
        if (!json_is_number(a) || !json_is_number(b))
                return !cJSON_IsNull(a) && json_equal(a, b);
        return json_number(a, 0) >= json_number(b, 0) && json_number(a, 0) <= json_number(b, 0);
}

static void check_enum(struct validation *validation, const cJSON *schema, const struct spot *spot)
{
        const cJSON *allowed = schema_keyword(schema, "enum"), *item;
        _cleanup_text_ struct text list = TEXT_EMPTY;
        _cleanup_free_ char *value = NULL;

        cJSON_ArrayForEach(item, allowed)
        {
                _cleanup_free_ char *text = NULL, *quoted = NULL;

                if (is_same(item, spot->value))
                        return;
                text = value_describe(item);
                quoted = !cJSON_IsString(item) && text ? text_quote(text) : NULL;
                text_printf(&list, "%s%s", list.size > 0 ? ", " : "", quoted ? quoted : text);
        }
        value = list.size > 0 ? value_describe(spot->value) : NULL;
        if (value)
                mistake_of_schema(validation, MISTAKE_NOT_SUPPORTED, spot->step, value,
                                  "supported values: %s", list.data);
}

/* ---- lists and objects */

static void check_count(struct validation *validation, const cJSON *schema, const struct spot *spot)
{
        bool is_list = cJSON_IsArray(spot->value);
        long least = bound_of(schema, is_list ? "minItems" : "minProperties");
        long most = bound_of(schema, is_list ? "maxItems" : "maxProperties");
        long count = least >= 0 || most >= 0 ? cJSON_GetArraySize(spot->value) : 0;
        char text[24];

        snprintf(text, sizeof(text), "%ld", count);
        if (count < least)
                mistake_of_schema(validation, MISTAKE_INVALID, spot->step, text,
                                  "should have at least %ld %s", least, is_list ? "items" : "properties");
        if (most >= 0 && count > most)
                mistake_of_schema(validation, MISTAKE_TOO_MANY, spot->step, text,
                                  "must have at most %ld item%s", most, most == 1 ? "" : "s");
}

static void check_list(struct validation *validation, const cJSON *schema, const struct spot *spot)
{
        const cJSON *items = schema_keyword(schema, "items"), *element;
        size_t index = 0;

        for (element = items ? spot->value->child : NULL; element; element = element->next) {
                struct step step = step_element(spot->step, index++);

                validate(validation, items, (struct spot){.value = element, .step = &step});
        }
        validation->matches++;
}

static void validate_object(struct validation *validation, const cJSON *schema, const struct spot *spot)
{
        const cJSON *of_schema = NULL, *of_before = NULL, *of_value = NULL, *member, *name;
        bool known;

        cJSON_ArrayForEach(member, spot->value)
        {
                const cJSON *inner = schema_of_member(schema, member->string, &of_schema, &known);
                const cJSON *before = json_member_from(spot->before, member->string, &of_before);
                struct step step = step_member(spot->step, member->string);

                if (inner)
                        validate(validation, inner,
                                 (struct spot){.value = member, .before = before, .step = &step});
        }
        cJSON_ArrayForEach(name, schema_keyword(schema, "required"))
        {
                struct step step = step_member(spot->step, name->valuestring);

                if (!json_member_from(spot->value, name->valuestring, &of_value))
                        mistake_of_schema(validation, MISTAKE_REQUIRED, &step, NULL, "%s", "");
        }
}

/* ---- schemas together */

static struct validation try(const struct validation *validation, const cJSON *schema, struct spot spot)
{
        struct validation inner = {.prefix = validation->prefix};

        validate(&inner, schema, spot);
        return inner;
}

static void merge(struct validation *validation, struct validation *inner)
{
        validation->matches += inner->matches;
        mistakes_merge(&validation->mistakes, &inner->mistakes);
}

/* Kept is the first that holds, or else the one that came nearest. Returns how many hold. */
static size_t try_some(struct validation *validation, const cJSON *schemas, const struct spot *spot,
                       bool first_is_enough, struct validation *ret_best)
{
        const cJSON *schema;
        size_t valid = 0;

        cJSON_ArrayForEach(schema, schemas)
        {
                struct validation inner = try(validation, schema, *spot);
                bool holds = inner.mistakes.count == 0;

                if (schema == schemas->child ||
                    (valid == 0 && (holds || inner.matches > ret_best->matches))) {
                        mistakes_done(&ret_best->mistakes);
                        *ret_best = inner;
                } else {
                        mistakes_done(&inner.mistakes);
                }
                valid += holds ? 1 : 0;
                if (holds && first_is_enough)
                        break;
        }
        return valid;
}

static void check_alternatives(struct validation *validation, const cJSON *schema, const struct spot *spot,
                               bool one)
{
        const cJSON *schemas = schema_keyword(schema, one ? "oneOf" : "anyOf");
        struct validation best = {0};
        size_t valid;
        char text[100] = "must validate at least one schema (anyOf)", found[24] = "none";

        if (!schemas || !schemas->child)
                return;
        valid = try_some(validation, schemas, spot, !one, &best);
        if (valid > 0)
                snprintf(found, sizeof(found), "%zu", valid);
        if (one)
                snprintf(text, sizeof(text),
                         "must validate one and only one schema (oneOf). Found %s valid%s", found,
                         valid > 0 ? " alternatives" : "");
        if (one ? valid != 1 : valid == 0)
                wrong_whole(validation, spot->step, text);
        merge(validation, &best);
}

static void check_all(struct validation *validation, const cJSON *schema, const struct spot *spot)
{
        const cJSON *not = schema_keyword(schema, "not"), *each;
        struct validation inner;
        size_t valid = 0, count = 0;

        cJSON_ArrayForEach(each, schema_keyword(schema, "allOf"))
        {
                inner = try(validation, each, *spot);
                valid += inner.mistakes.count == 0 ? 1 : 0;
                count++;
                merge(validation, &inner);
        }
        if (valid < count)
                wrong_whole(validation, spot->step,
                            valid == 0 ? "must validate all the schemas (allOf). None validated"
                                       : "must validate all the schemas (allOf)");
        inner = not ? try(validation, not, *spot) : (struct validation){.mistakes.count = 1};
        if (inner.mistakes.count == 0)
                wrong_whole(validation, spot->step, "must not validate the schema (not)");
        mistakes_done(&inner.mistakes);
}

static void validate(struct validation *validation, const cJSON *schema, struct spot spot)
{
        if (validation->mistakes.count == MISTAKES_MAX ||
            (spot.before && json_equal(spot.before, spot.value)))
                return;
        spot.type = type_of(spot.value);
        validation->matches += check_type(validation, schema, &spot) ? 1 : 0;
        check_enum(validation, schema, &spot);
        if (cJSON_IsNull(spot.value))
                return;
        validation->matches += json_text(schema, "type")[0] ? 5 : 4;
        check_alternatives(validation, schema, &spot, false);
        check_alternatives(validation, schema, &spot, true);
        check_all(validation, schema, &spot);
        if (json_is_number(spot.value)) {
                validation->matches += 2;
                check_multiple(validation, schema, &spot);
                check_bound(validation, schema, &spot, false);
                check_bound(validation, schema, &spot, true);
                return;
        }
        validation->matches++;
        check_string(validation, schema, &spot);
        if (cJSON_IsArray(spot.value) || cJSON_IsObject(spot.value))
                check_count(validation, schema, &spot);
        if (cJSON_IsArray(spot.value))
                check_list(validation, schema, &spot);
        if (cJSON_IsObject(spot.value))
                validate_object(validation, schema, &spot);
}

void schema_validate(const cJSON *value, const cJSON *before, const cJSON *schema, const char *prefix,
                     struct mistakes *mistakes)
{
        struct validation validation = {.prefix = prefix};

        validate(&validation, schema, (struct spot){.value = value, .before = before});
        mistakes_merge(mistakes, &validation.mistakes);
}
