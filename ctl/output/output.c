/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/output/output.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/exit-code.h"
#include "ipc/message.h"
#include "json/difference.h"
#include "json/json.h"

bool ctl_wants_colour(void)
{
        const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");

        return isatty(STDOUT_FILENO) == 1 && (!none || !none[0]) && terminal &&
               strcmp(terminal, "dumb") != 0;
}

void ctl_colour(enum colour colour)
{
        static const char *const code[] = {"\033[0m", "\033[1m", "\033[31m"};

        if (ctl_wants_colour())
                fputs(code[colour], stdout);
}

int ctl_done(bool json, cJSON *answer, const char *format, ...)
{
        _cleanup_json_ cJSON *alone = json && !answer ? cJSON_CreateObject() : NULL;
        _cleanup_text_ struct text message = TEXT_EMPTY;
        va_list arguments;

        va_start(arguments, format);
        text_vprintf(&message, format, arguments);
        va_end(arguments);
        if (!json) {
                puts(message.data ? message.data : "");
        } else {
                answer = answer ? answer : alone;
                cJSON_AddTrueToObject(answer, "done");
                cJSON_AddStringToObject(answer, "message", message.data ? message.data : "");
                (void)ctl_print_json(answer);
        }
        return EXIT_CODE_OK;
}

void ctl_print_yaml(const cJSON *answer)
{
        _cleanup_text_ struct text yaml = TEXT_EMPTY;

        manifest_write(&yaml, answer);
        fputs(yaml.data ? yaml.data : "", stdout);
}

void ctl_line(const char *format, ...)
{
        _cleanup_text_ struct text line = TEXT_EMPTY;
        va_list arguments;

        va_start(arguments, format);
        text_vprintf(&line, format, arguments);
        va_end(arguments);
        if (line.data)
                utf8_clean(line.data);
        puts(line.data ? line.data : "");
}

/* None of them is above U+FFFF. */
static unsigned code_point(const char *character, size_t length)
{
        const unsigned char *at = (const unsigned char *)character;

        switch (length) {
        case 2:
                return (at[0] & 0x1fU) << 6 | (at[1] & 0x3fU);
        case 3:
                return (at[0] & 0x0fU) << 12 | (at[1] & 0x3fU) << 6 | (at[2] & 0x3fU);
        default:
                return at[0];
        }
}

void ctl_put_json(const char *json)
{
        size_t size = strlen(json);

        for (size_t i = 0, length; i < size; i += length) {
                length = utf8_sequence(json + i, size - i);
                length = length > 0 ? length : 1;
                if (json[i] == '\n' || utf8_is_printable(json + i, length))
                        fwrite(json + i, 1, length, stdout);
                else
                        printf("\\u%04x", code_point(json + i, length));
        }
}

int ctl_print_json(const cJSON *answer)
{
        _cleanup_free_ char *json = cJSON_Print(answer);

        ctl_put_json(json ? json : "{}");
        putchar('\n');
        return json ? 0 : -1;
}

int ctl_failed(int status, const struct error *error)
{
        fprintf(stderr, "reconciledctl: %s\n", error_message(error));
        return status == -EACCES   ? EXIT_CODE_NO_PERMISSION
               : status == -ENOENT ? EXIT_CODE_UNAVAILABLE
                                   : EXIT_CODE_SOFTWARE;
}

/* ---- differences */

static bool has_colours(void)
{
        const char *no = getenv("NO_COLOR");

        return isatty(STDOUT_FILENO) && !(no && no[0]);
}

static void print_leaf(const char *indent, char sign, const char *path, const cJSON *value)
{
        _cleanup_free_ char *json = cJSON_PrintUnformatted(value);
        const char *colour = !has_colours() ? "" : sign == '+' ? "\033[32m" : "\033[31m";

        fputs(colour, stdout);
        ctl_line("%s%c %s: %s", indent, sign, path, json ? json : "?");
        fputs(colour[0] ? "\033[0m" : "", stdout);
}

static void print_both(const char *path, const cJSON *before, const cJSON *after, void *userdata)
{
        if (before)
                print_leaf(userdata, '-', path, before);
        if (after)
                print_leaf(userdata, '+', path, after);
}

size_t difference_print(const cJSON *before, const cJSON *after, const char *indent)
{
        return difference_visit(before, after, print_both, (void *)(uintptr_t)indent);
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Words that are no strings when they are alone (YAML 1.1), and anything that might begin a number or have a
 * meaning, are quoted; JSON's quotes are YAML's. */
static bool is_plain_scalar(const char *value)
{
        static const char *const special[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};

        for (size_t i = 0; i < ELEMENTS(special); i++)
                if (strcasecmp(value, special[i]) == 0)
                        return false;
        return isalpha((unsigned char)value[0]) && !value[strspn(value, LETTERS "0123456789.-/")];
}

static void write_string(struct text *out, const char *value)
{
        if (is_plain_scalar(value))
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

static void write_yaml_object(struct text *out, const cJSON *object, int indent, bool begun);

static void write_objects(struct text *out, const cJSON *list, int indent)
{
        const cJSON *item;

        cJSON_ArrayForEach(item, list)
        {
                const char *comment = json_text(item, MANIFEST_COMMENT);

                if (comment[0])
                        text_printf(out, "%*s# %s\n", indent, "", comment);
                text_printf(out, "%*s- ", indent, "");
                write_yaml_object(out, item, indent + 2, true);
        }
}

/* begun: the place of its first member is reached. */
static void write_yaml_object(struct text *out, const cJSON *object, int indent, bool begun)
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
                        write_yaml_object(out, member, indent + 2, false);
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
        write_yaml_object(out, manifest, 0, false);
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
