/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/output/manifest.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "json/json.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Words that are no strings when they stand alone (YAML 1.1), and anything that might begin a number or have
 * a meaning, are quoted; JSON's quotes are YAML's. */
static bool is_plain(const char *value)
{
        static const char *const special[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};

        for (size_t i = 0; i < ELEMENTS(special); i++)
                if (strcasecmp(value, special[i]) == 0)
                        return false;
        return isalpha((unsigned char)value[0]) && !value[strspn(value, LETTERS "0123456789.-/")];
}

static void write_string(struct text *out, const char *value)
{
        if (is_plain(value))
                text_append_string(out, value);
        else
                text_json_string(out, value);
}

static void write_words(struct text *out, const cJSON *list)
{
        const char *separator = "";
        const cJSON *item;

        text_append_string(out, " [");
        cJSON_ArrayForEach(item, list)
        {
                text_append_string(out, separator);
                write_string(out, cJSON_GetStringValue(item));
                separator = ", ";
        }
        text_append_string(out, "]\n");
}

/* A number, true, false, null, an empty list or object: JSON's form is YAML's. */
static void write_scalar(struct text *out, const cJSON *value)
{
        _cleanup_free_ char *json = cJSON_PrintUnformatted(value);

        text_printf(out, " %s\n", json ? json : "null");
}

static void write_object(struct text *out, const cJSON *object, int indent, bool begun);

static void write_objects(struct text *out, const cJSON *list, int indent)
{
        const cJSON *item;

        cJSON_ArrayForEach(item, list)
        {
                const char *comment = json_text(item, MANIFEST_COMMENT);

                if (comment[0])
                        text_printf(out, "%*s# %s\n", indent, "", comment);
                text_printf(out, "%*s- ", indent, "");
                write_object(out, item, indent + 2, true);
        }
}

/* begun: the place of its first member is reached. */
static void write_object(struct text *out, const cJSON *object, int indent, bool begun)
{
        const cJSON *member;

        cJSON_ArrayForEach(member, object)
        {
                if (strcmp(member->string, MANIFEST_COMMENT) == 0)
                        continue;
                text_printf(out, "%*s%s:", begun ? 0 : indent, "", member->string);
                begun = false;
                if (cJSON_IsString(member)) {
                        text_append_string(out, " ");
                        write_string(out, member->valuestring);
                        text_append_string(out, "\n");
                } else if (!member->child) {
                        write_scalar(out, member);
                } else if (cJSON_IsObject(member)) {
                        text_append_string(out, "\n");
                        write_object(out, member, indent + 2, false);
                } else if (cJSON_IsString(member->child)) {
                        write_words(out, member);
                } else {
                        text_append_string(out, "\n");
                        write_objects(out, member, indent);
                }
        }
}

void manifest_write(struct text *out, const cJSON *manifest)
{
        const char *comment = json_text(manifest, MANIFEST_COMMENT);

        text_append_string(out, "---\n");
        if (comment[0])
                text_printf(out, "# %s\n", comment);
        write_object(out, manifest, 0, false);
}

void manifest_strip_comments(cJSON *value)
{
        cJSON *item;

        cJSON_DeleteItemFromObjectCaseSensitive(value, MANIFEST_COMMENT);
        cJSON_ArrayForEach(item, value)
        {
                manifest_strip_comments(item);
        }
}
