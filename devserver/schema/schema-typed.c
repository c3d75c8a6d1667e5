/* SPDX-License-Identifier: Apache-2.0 */
/* What structured-merge-diff says of a configuration that is applied, before it is merged with what is there. */
#include "devserver/schema/schema-typed.h"

#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/schema/schema-elements.h"
#include "devserver/schema/schema-fit.h"
#include "devserver/schema/schema-mistakes.h"
#include "devserver/tree/form.h"
#include "devserver/tree/tree.h"
#include "json/json.h"

#define NOT_DECLARED "field not declared in schema"

/* Notes the first mistake that is found. */
static void tell(struct text *mistake, const struct step *step, const char *format, ...) _printf_(3, 4);

static void tell(struct text *mistake, const struct step *step, const char *format, ...)
{
        _cleanup_free_ char *way = step_describe("", step);
        va_list arguments;

        if (mistake->size > 0)
                return;
        text_printf(mistake, ".%s: ", way ? way : "");
        va_start(arguments, format);
        text_vprintf(mistake, format, arguments);
        va_end(arguments);
}

/* A text with a format may be any scalar there. */
static void check_type(struct text *mistake, const cJSON *value, const cJSON *schema,
                       const struct step *step)
{
        const char *type = json_text(schema, "type"), *format = json_text(schema, "format");
        _cleanup_free_ char *shown = cJSON_IsString(value) ? strdup(value->valuestring) : form_print(value);

        if (strcmp(type, "object") == 0 && !cJSON_IsObject(value))
                tell(mistake, step, "expected map, got &{%s}", shown);
        else if (strcmp(type, "array") == 0 && !cJSON_IsArray(value))
                tell(mistake, step, "expected list, got &{%s}", shown);
        else if (strcmp(type, "boolean") == 0 && !cJSON_IsBool(value))
                tell(mistake, step, "expected boolean, got &{%s}", shown);
        else if ((strcmp(type, "integer") == 0 || strcmp(type, "number") == 0) && !json_is_number(value))
                tell(mistake, step, "expected numeric (int or float), got %s",
                     cJSON_IsBool(value)     ? "bool"
                     : cJSON_IsObject(value) ? "map[string]interface {}"
                     : cJSON_IsArray(value)  ? "[]interface {}"
                                             : "string");
        else if (strcmp(type, "string") == 0 && format[0] && (cJSON_IsObject(value) || cJSON_IsArray(value)))
                tell(mistake, step, "expected any scalar, got &{%s}", shown);
        else if (strcmp(type, "string") == 0 && !format[0] && (json_is_number(value) || !value->valuestring))
                tell(mistake, step, "expected string, got &value.valueUnstructured{Value:%s}", shown);
}

/* An element of a map needs one of its keys. */
static bool has_key(const cJSON *element, const cJSON *schema)
{
        const cJSON *keys = schema_keyword(schema, "x-kubernetes-list-map-keys"), *key;

        cJSON_ArrayForEach(key, keys)
        {
                if (cJSON_GetObjectItemCaseSensitive(element, key->valuestring))
                        return true;
        }
        return !keys || !cJSON_IsObject(element);
}

/* open: members may be here that are not declared. */
static void check(struct text *mistake, const cJSON *value, const cJSON *schema, const struct step *step,
                  bool open)
{
        const cJSON *child, *at = NULL, *items = schema_keyword(schema, "items");
        bool is_free = step && !schema_keyword(schema, "properties");
        bool embedded = !step || schema_is(schema, "x-kubernetes-embedded-resource");
        size_t index = 0;

        if (!schema || cJSON_IsNull(value) || mistake->size > 0)
                return;
        check_type(mistake, value, schema, step);
        open = open || schema_is(schema, "x-kubernetes-preserve-unknown-fields");
        cJSON_ArrayForEach(child, value)
        {
                struct step here =
                        child->string ? step_member(step, child->string) : step_element(step, index++);
                bool known = true;
                const cJSON *inner =
                        child->string ? schema_of_member(schema, child->string, &at, &known) : items;

                if (child->string && embedded && schema_is_left_out(child->string))
                        continue;
                if (!child->string && !has_key(child, schema))
                        tell(mistake, step,
                             "element %zu: associative list with keys has an element that omits all key fields",
                             here.index);
                if (known || open || is_free)
                        check(mistake, child, inner, &here, open);
                else
                        tell(mistake, &here, NOT_DECLARED);
        }
}

/* Elements of maps need a key, and no element may be there twice. */
static void check_keys(struct text *mistake, const cJSON *config, const cJSON *schema)
{
        struct mistakes wrong = {0};

        if (mistake->size == 0)
                schema_check_lists(config, NULL, schema, &wrong);
        if (wrong.count > 0)
                text_printf(mistake, ".%s: duplicate entries for key: %s",
                            json_text(wrong.cause->child, "field"),
                            json_text(wrong.cause->child, "message"));
        mistakes_done(&wrong);
}

char *schema_typed_mistake(const cJSON *config, const cJSON *schema)
{
        const struct step at = step_member(NULL, "metadata");
        struct text mistake = TEXT_EMPTY;
        const cJSON *member;

        cJSON_ArrayForEach(member, tree_metadata(config))
        {
                struct step here = step_member(&at, member->string);

                if (member->string && !form_is_of_metadata(member->string))
                        tell(&mistake, &here, NOT_DECLARED);
        }
        check(&mistake, config, schema, NULL, false);
        check_keys(&mistake, config, schema);
        if (mistake.size > 0)
                return text_take(&mistake);
        text_done(&mistake);
        return NULL;
}

void schema_complete_keys(cJSON *config, const cJSON *schema)
{
        const cJSON *items = schema_keyword(schema, "items"), *keys, *key, *at = NULL;
        const cJSON *properties = schema_keyword(items, "properties");
        bool known;

        keys = cJSON_IsArray(config) ? schema_keyword(schema, "x-kubernetes-list-map-keys") : NULL;
        for (cJSON *child = schema ? config->child : NULL; child; child = child->next) {
                cJSON_ArrayForEach(key, keys)
                {
                        const cJSON *standard =
                                schema_keyword(schema_keyword(properties, key->valuestring), "default");

                        if (cJSON_IsObject(child) && standard &&
                            !cJSON_GetObjectItemCaseSensitive(child, key->valuestring))
                                cJSON_AddItemToObject(child, key->valuestring,
                                                      cJSON_Duplicate(standard, true));
                }
                schema_complete_keys(
                        child, child->string ? schema_of_member(schema, child->string, &at, &known) : items);
        }
}
