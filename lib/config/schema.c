/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the JSON Schema of reconciled.yaml, so that editors complete and check the file: types, bounds,
 * words to choose from and defaults come from the table of keys (lib/config/table.c), the descriptions from
 * lib/config/schema-words.c. Runs while the project is built; what several keys decide together only
 * `reconciledctl check` can tell.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "config/check/check.h"
#include "config/config.h"
#include "config/schema-words.h"
#include "config/table.h"

#define DIALECT    "https://json-schema.org/draft/2020-12/schema"
#define KEY_LENGTH 256

/* 0 needs no unit. */
#define DURATION_PATTERN "^(0|([0-9]+(\\.[0-9]+)?(us|ms|s|m|h|d))+)$"
#define SIZE_PATTERN     "^[0-9]+([KMGT]iB?)?$"
#define MILLI_PATTERN    "^[0-9]{1,7}(m|\\.[0-9]{1,3})?$"

/* Fails the build: a schema must be complete. */
static void _noreturn_ give_up_schema(const char *why, const char *key)
{
        fprintf(stderr, "config-schema: %s: %s\n", key, why);
        exit(EXIT_FAILURE);
}

static cJSON *made(cJSON *value)
{
        if (!value)
                give_up_schema("out of memory", "reconciled.yaml");
        return value;
}

static void put_member(cJSON *object, const char *name, cJSON *value)
{
        if (!cJSON_AddItemToObject(object, name, made(value)))
                give_up_schema("out of memory", name);
}

static cJSON *words(const char *const *word)
{
        cJSON *array = made(cJSON_CreateArray());

        for (; *word; word++)
                if (!cJSON_AddItemToArray(array, made(cJSON_CreateString(*word))))
                        give_up_schema("out of memory", *word);
        return array;
}

/* YAML makes numbers and booleans of texts like 1000 or true; they are read as texts. */
static void put_scalar(cJSON *schema)
{
        static const char *const scalar[] = {"string", "number", "boolean", NULL};

        put_member(schema, "type", words(scalar));
        put_member(schema, "minLength", cJSON_CreateNumber(1));
}

/* A text of this pattern, or a number. */
static void put_pattern(cJSON *schema, const char *number, const char *pattern)
{
        const char *const both[] = {"string", number, NULL};

        put_member(schema, "type", words(both));
        put_member(schema, "pattern", cJSON_CreateString(pattern));
}

static const char *find_description(const char *path)
{
        for (const struct config_words *entry = config_words; entry->key; entry++)
                if (strcmp(entry->key, path) == 0)
                        return entry->text;
        return NULL;
}

/* What schedules and `startup` share with watches is described there. */
static const char *description_of(const char *path)
{
        static const char *const like_watches[] = {"schedules[].", "startup."};
        const char *found = find_description(path);
        char shared[KEY_LENGTH];

        for (size_t i = 0; i < ELEMENTS(like_watches) && !found; i++) {
                size_t length = strlen(like_watches[i]);

                if (strncmp(path, like_watches[i], length) != 0)
                        continue;
                snprintf(shared, sizeof(shared), "watches[].%s", path + length);
                found = find_description(shared);
        }
        if (!found)
                give_up_schema("has no description in lib/config/schema-words.c", path);
        return found;
}

static cJSON *mapping(const char *path, const struct key_table *table, const void *defaults);

static cJSON *list(const char *path, const struct key_table *table, const void *defaults)
{
        char inner[KEY_LENGTH + sizeof("[]")];
        cJSON *schema = made(cJSON_CreateObject());

        snprintf(inner, sizeof(inner), "%.*s[]", KEY_LENGTH, path);
        put_member(schema, "type", cJSON_CreateString("array"));
        put_member(schema, "items", mapping(inner, table, defaults));
        return schema;
}

static void put_duration(cJSON *schema, const struct key *key, const uint64_t *usec)
{
        char least[64], most[64], text[160];

        put_pattern(schema, "integer", DURATION_PATTERN);
        put_member(schema, "maximum", cJSON_CreateNumber(0));
        duration_format(key->min, least, sizeof(least));
        duration_format(key->max, most, sizeof(most));
        snprintf(text, sizeof(text), "%s to %s", least, most);
        put_member(schema, "$comment", cJSON_CreateString(text));
        if (usec && *usec > 0)
                put_member(schema, "default",
                           cJSON_CreateString(duration_format(*usec, text, sizeof(text))));
}

static void put_number(cJSON *schema, const struct key *key, const unsigned *number)
{
        put_member(schema, "type", cJSON_CreateString("integer"));
        put_member(schema, "minimum", cJSON_CreateNumber((double)key->min));
        put_member(schema, "maximum", cJSON_CreateNumber((double)key->max));
        if (number && *number > 0)
                put_member(schema, "default", cJSON_CreateNumber(*number));
}

/* Sizes that are defaults are whole MiB. */
static void put_size(cJSON *schema, const uint64_t *bytes)
{
        char text[32];

        put_pattern(schema, "integer", SIZE_PATTERN);
        if (!bytes || *bytes == 0)
                return;
        snprintf(text, sizeof(text), "%lluMi", (unsigned long long)*bytes >> 20);
        put_member(schema, "default", cJSON_CreateString(text));
}

static void put_trigger(cJSON *schema, const struct key *key, const char *path)
{
        cJSON *choice = made(cJSON_CreateArray()), *word = made(cJSON_CreateObject());
        const char *const name[] = {trigger_name(TRIGGER_ESSENCE), trigger_name(TRIGGER_ANY), NULL};

        put_member(word, "enum", words(name));
        (void)cJSON_AddItemToArray(choice, word);
        (void)cJSON_AddItemToArray(choice, mapping(path, key->keys, NULL));
        put_member(schema, "oneOf", choice);
        put_member(schema, "default", cJSON_CreateString(name[0]));
}

/* A list of texts, or a mapping of the author's own names to texts; null is an empty text there. */
static cJSON *texts(const char *type, const char *items)
{
        static const char *const scalar[] = {"string", "number", "boolean", "null", NULL};
        cJSON *schema = made(cJSON_CreateObject()), *item = made(cJSON_CreateObject());

        put_member(item, "type", words(scalar));
        put_member(schema, "type", cJSON_CreateString(type));
        put_member(schema, items, item);
        return schema;
}

/* Lists of mappings, and mappings. */
static cJSON *nested(const char *path, const struct key *key, const void *defaults)
{
        struct config_watch watch;
        cJSON *schema;

        switch (key->kind) {
        case KEY_MAPPING:
                return mapping(path, key->keys, defaults);
        case KEY_KINDS:
                return list(path, key->keys, NULL);
        case KEY_WATCHES:
                watch_defaults(&watch);
                return list(path, key->keys, &watch);
        case KEY_WATCH:
                watch_defaults(&watch);
                return mapping(path, key->keys, &watch);
        case KEY_TEXTS:
                schema = texts("array", "items");
                put_member(schema, "minItems", cJSON_CreateNumber(1));
                return schema;
        case KEY_PAIRS:
                return texts("object", "additionalProperties");
        default:
                return made(cJSON_CreateObject());
        }
}

static cJSON *value(const char *path, const struct key *key, const void *defaults)
{
        const void *place = defaults ? (const char *)defaults + key->offset : NULL;
        cJSON *schema = nested(path, key, defaults);

        put_member(schema, "description", cJSON_CreateString(description_of(path)));
        switch (key->kind) {
        case KEY_TEXT:
                put_scalar(schema);
                break;
        case KEY_DURATION:
                put_duration(schema, key, place);
                break;
        case KEY_UNSIGNED:
                put_number(schema, key, place);
                break;
        case KEY_SIZE:
                put_size(schema, place);
                break;
        case KEY_MILLI:
                put_pattern(schema, "number", MILLI_PATTERN);
                put_member(schema, "minimum", cJSON_CreateNumber((double)key->min / 1000));
                put_member(schema, "maximum", cJSON_CreateNumber((double)key->max / 1000));
                break;
        case KEY_BOOL:
                put_member(schema, "type", cJSON_CreateString("boolean"));
                put_member(schema, "default", cJSON_CreateBool(place && *(const bool *)place));
                break;
        case KEY_CHOICE:
                put_member(schema, "enum", words(key->choice));
                put_member(schema, "default",
                           cJSON_CreateString(key->choice[place ? *(const unsigned *)place : 0]));
                break;
        case KEY_TRIGGER:
                put_trigger(schema, key, path);
                break;
        case KEY_TEXTS:
        case KEY_PAIRS:
        case KEY_MAPPING:
        case KEY_KINDS:
        case KEY_WATCHES:
        case KEY_WATCH:
                break;
        }
        return schema;
}

static cJSON *mapping(const char *path, const struct key_table *table, const void *defaults)
{
        cJSON *schema = made(cJSON_CreateObject()), *properties = made(cJSON_CreateObject()),
              *required = made(cJSON_CreateArray());

        FOREACH_ARRAY(key, table->key, table->count) {
                char inner[KEY_LENGTH];

                snprintf(inner, sizeof(inner), "%s%s%s", path, path[0] ? "." : "", key->name);
                put_member(properties, key->name, value(inner, key, defaults));
                if (key->required)
                        (void)cJSON_AddItemToArray(required, made(cJSON_CreateString(key->name)));
        }
        put_member(schema, "type", cJSON_CreateString("object"));
        put_member(schema, "properties", properties);
        if (cJSON_GetArraySize(required) > 0)
                put_member(schema, "required", required);
        else
                cJSON_Delete(required);
        put_member(schema, "additionalProperties", cJSON_CreateFalse());
        return schema;
}

/* Every description belongs to a key: "watches[].handler.exec" is looked up in the finished schema. */
static bool has_property(const cJSON *schema, const char *key)
{
        char name[KEY_LENGTH];
        size_t length = strcspn(key, ".[");
        const cJSON *found, *jq = NULL;

        snprintf(name, sizeof(name), "%.*s", (int)length, key);
        found = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(schema, "properties"),
                                                 name);
        if (found && strncmp(key + length, "[]", 2) == 0) {
                found = cJSON_GetObjectItemCaseSensitive(found, "items");
                length += 2;
        }
        if (!found || key[length] == '\0')
                return found;
        jq = cJSON_GetObjectItemCaseSensitive(found, "oneOf");
        return has_property(jq ? cJSON_GetArrayItem(jq, 1) : found, key + length + 1);
}

int main(void)
{
        struct config *config = config_new();
        cJSON *schema = mapping("", &config_table, config);
        char *text;

        for (const struct config_words *entry = config_words; entry->key; entry++)
                if (!has_property(schema, entry->key))
                        give_up_schema("is described in lib/config/schema-words.c, and is no key",
                                       entry->key);
        put_member(schema, "$schema", cJSON_CreateString(DIALECT));
        put_member(schema, "title", cJSON_CreateString("reconciled.yaml"));
        put_member(schema, "description",
                   cJSON_CreateString("Configuration of a reconciled operator: reconciled.yaml(5). "
                                      "`reconciledctl check` also judges keys that depend on each other."));
        text = cJSON_Print(schema);
        if (!text || puts(text) == EOF || fflush(stdout) != 0)
                give_up_schema("cannot be printed", "reconciled.yaml");
        cJSON_free(text);
        cJSON_Delete(schema);
        config_free(config);
        return EXIT_SUCCESS;
}
