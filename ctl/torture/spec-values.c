/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/torture/spec-values.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "json/json.h"

#define DEPTH_MAX  8
#define VALUES_MAX 200
#define WORDS_MAX  8 /* of an enumeration */

struct walker {
        cJSON *out;
        const cJSON *root;
        const char *name;
        const char *member[DEPTH_MAX]; /* the way from the root; NULL: the first entry of a list */
        size_t depth;
        bool hidden;
};

/* ---- one value */

static cJSON *enter(cJSON *place, const char *member)
{
        if (!member)
                return cJSON_IsArray(place) ? place->child : NULL;
        if (!json_member(place, member))
                cJSON_AddObjectToObject(place, member);
        return json_member(place, member);
}

static void append_way(const struct walker *walker, struct text *words)
{
        text_append_string(words, walker->name);
        for (size_t i = 0; i < walker->depth; i++)
                text_printf(words, walker->member[i] ? ".%s" : "[0]",
                            walker->member[i] ? walker->member[i] : "");
}

/* Takes the value; NULL: without the member. */
static void add_value(struct walker *walker, cJSON *value)
{
        cJSON *spec = walker->root ? cJSON_Duplicate(walker->root, true) : cJSON_CreateObject(),
              *place = spec;
        const char *last = walker->depth > 0 ? walker->member[walker->depth - 1] : NULL;
        _cleanup_free_ char *json = value ? cJSON_PrintUnformatted(value) : NULL;
        _cleanup_text_ struct text words = TEXT_EMPTY;
        cJSON *each;

        append_way(walker, &words);
        if (value && walker->hidden)
                text_printf(&words, " is another value (%d)", cJSON_GetArraySize(walker->out) + 1);
        else if (value)
                text_printf(&words, " is %.60s", json ? json : "");
        else
                text_append_string(&words, " is absent");
        for (size_t i = 0; i + 1 < walker->depth && place; i++)
                place = enter(place, walker->member[i]);
        if (!cJSON_IsObject(place) || !last || words.failed ||
            cJSON_GetArraySize(walker->out) >= VALUES_MAX) {
                cJSON_Delete(value);
                cJSON_Delete(spec);
                return;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(place, last);
        if (value)
                cJSON_AddItemToObject(place, last, value);
        each = cJSON_CreateObject();
        cJSON_AddStringToObject(each, "words", words.data);
        cJSON_AddItemToObject(each, "spec", spec);
        cJSON_AddItemToArray(walker->out, each);
}

static const char *value_type(const cJSON *value, const cJSON *schema)
{
        const char *type = json_text(schema, "type");

        if (type[0] || !value)
                return type;
        return cJSON_IsBool(value)     ? "boolean"
               : json_is_number(value) ? "number"
               : cJSON_IsString(value) ? "string"
               : cJSON_IsArray(value)  ? "array"
                                       : "object";
}

static cJSON *value_of_number(double value)
{
        return value == (double)(int64_t)value ? json_new_integer((int64_t)value)
                                               : cJSON_CreateNumber(value);
}

/* A value that the schema may allow, where there is none. */
static cJSON *example_of(const cJSON *schema, unsigned depth)
{
        const char *type = json_text(schema, "type");
        const cJSON *words = json_member(schema, "enum"), *required;
        cJSON *object;

        if (json_member(schema, "default"))
                return cJSON_Duplicate(json_member(schema, "default"), true);
        if (words && words->child)
                return cJSON_Duplicate(words->child, true);
        if (strcmp(type, "boolean") == 0)
                return cJSON_CreateTrue();
        if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0)
                return value_of_number(json_number(json_member(schema, "minimum"), 1));
        if (strcmp(type, "string") == 0)
                return cJSON_CreateString("example");
        if (strcmp(type, "array") == 0) {
                cJSON *list = cJSON_CreateArray();

                if (depth < DEPTH_MAX)
                        cJSON_AddItemToArray(list, example_of(json_member(schema, "items"), depth + 1));
                return list;
        }
        object = cJSON_CreateObject();
        cJSON_ArrayForEach(required, json_member(schema, "required"))
        {
                const char *name = cJSON_GetStringValue(required);

                if (name && depth < DEPTH_MAX)
                        cJSON_AddItemToObject(
                                object, name,
                                example_of(json_member(json_member(schema, "properties"), name), depth + 1));
        }
        return object;
}

/* ---- by type */

static void vary_number(struct walker *walker, const cJSON *value, const cJSON *schema)
{
        const cJSON *least = json_member(schema, "minimum"), *most = json_member(schema, "maximum");
        double now = json_number(value, 1);
        double other[] = {json_number(least, 0), json_number(most, now + 1), now + 1};

        for (size_t i = 0; i < ELEMENTS(other); i++) {
                bool known = other[i] == now;

                for (size_t j = 0; j < i; j++)
                        known = known || other[j] == other[i];
                if (!known)
                        add_value(walker, value_of_number(other[i]));
        }
}

static void vary_string(struct walker *walker, const cJSON *value, const cJSON *schema)
{
        const cJSON *list = json_member(schema, "enum"), *word;
        const char *text = cJSON_GetStringValue(value);
        _cleanup_free_ char *other = format_string("%s2", text ? text : "example");
        size_t count = 0;

        cJSON_ArrayForEach(word, list) if (!value || !json_equal(word, value))
        {
                if (count++ < WORDS_MAX)
                        add_value(walker, cJSON_Duplicate(word, true));
        }
        if (list)
                return;
        if (!text || text[0])
                add_value(walker, cJSON_CreateString(""));
        if (other)
                add_value(walker, cJSON_CreateString(walker->hidden ? "Mg==" : other));
}

static void vary_value(struct walker *walker, const cJSON *value, const cJSON *schema, bool required);

static void vary_list(struct walker *walker, const cJSON *value, const cJSON *schema)
{
        cJSON *shorter;

        if (value && value->child)
                add_value(walker, cJSON_CreateArray());
        if (value && value->child && value->child->next) {
                shorter = cJSON_Duplicate(value, true);
                cJSON_DeleteItemFromArray(shorter, 0);
                add_value(walker, shorter);
        }
        if (value && cJSON_IsObject(value->child) && walker->depth < DEPTH_MAX) {
                walker->member[walker->depth++] = NULL;
                vary_value(walker, value->child, json_member(schema, "items"), true);
                walker->depth--;
        }
}

static void vary_member(struct walker *walker, const cJSON *of, const cJSON *schema, const char *name)
{
        const cJSON *property = json_member(json_member(schema, "properties"), name), *each;
        bool required = false;

        cJSON_ArrayForEach(each, json_member(schema, "required")) required =
                required || (cJSON_IsString(each) && strcmp(each->valuestring, name) == 0);
        if (walker->depth == DEPTH_MAX)
                return;
        walker->member[walker->depth++] = name;
        vary_value(walker, json_member(of, name), property, required);
        walker->depth--;
}

static void vary_object(struct walker *walker, const cJSON *value, const cJSON *schema)
{
        const cJSON *properties = json_member(schema, "properties"), *each;

        if (walker->depth > 0 && value && value->child && !json_member(schema, "required"))
                add_value(walker, cJSON_CreateObject());
        cJSON_ArrayForEach(each, properties) vary_member(walker, value, schema, each->string);
        cJSON_ArrayForEach(each, value) if (!json_member(properties, each->string))
                vary_member(walker, value, schema, each->string);
}

static void vary_value(struct walker *walker, const cJSON *value, const cJSON *schema, bool required)
{
        const char *type = value_type(value, schema);
        bool is_member = walker->depth > 0 && walker->member[walker->depth - 1];

        if (!value && is_member && !json_member(schema, "enum")) {
                add_value(walker, example_of(schema, 0));
                return;
        }
        if (value && is_member && !required)
                add_value(walker, NULL);
        if (cJSON_IsTrue(json_member(schema, "nullable")) && is_member)
                add_value(walker, cJSON_CreateNull());
        if (strcmp(type, "boolean") == 0)
                add_value(walker, cJSON_CreateBool(!cJSON_IsTrue(value)));
        else if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0)
                vary_number(walker, value, schema);
        else if (strcmp(type, "string") == 0)
                vary_string(walker, value, schema);
        else if (strcmp(type, "array") == 0)
                vary_list(walker, value, schema);
        else
                vary_object(walker, value, schema);
}

cJSON *spec_values(const cJSON *spec, const cJSON *schema, const char *name, bool hidden)
{
        struct walker walker = {.out = cJSON_CreateArray(), .root = spec, .name = name, .hidden = hidden};

        if (walker.out)
                vary_object(&walker, spec, schema);
        return walker.out;
}
