/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/output/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "ctl/output/manifest.h"
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

int ctl_print_json(const cJSON *answer)
{
        _cleanup_free_ char *json = cJSON_Print(answer);

        puts(json ? json : "{}");
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
