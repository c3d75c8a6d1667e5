/* SPDX-License-Identifier: Apache-2.0 */
/* Members of the operator's answers, and times as people read them. */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/manifest.h"
#include "json/json.h"

const char *ctl_text(const cJSON *object, const char *name)
{
        const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

        return value ? value : "";
}

uint64_t ctl_number(const cJSON *object, const char *name)
{
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);

        double number = json_number(value, 0);

        return number > 0 ? (uint64_t)number : 0;
}

bool ctl_is(const cJSON *object, const char *name)
{
        return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, name));
}

const char *ctl_duration(uint64_t usec, char *buffer, size_t size)
{
        uint64_t unit = usec < USEC_PER_SEC      ? USEC_PER_MSEC
                        : usec < USEC_PER_MINUTE ? 100 * USEC_PER_MSEC
                                                 : USEC_PER_SEC;

        return duration_format(usec < USEC_PER_MSEC ? usec : usec / unit * unit, buffer, size);
}

const char *ctl_since(const cJSON *object, const char *name, char *buffer, size_t size)
{
        uint64_t then = ctl_number(object, name), now = clock_realtime_usec();

        return then == 0 || then > now ? "-" : ctl_duration(now - then, buffer, size);
}

const char *ctl_until(const cJSON *object, const char *name, char *buffer, size_t size)
{
        uint64_t then = ctl_number(object, name), now = clock_realtime_usec();

        return then > now ? ctl_duration(then - now, buffer, size) : "a moment";
}

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
        _cleanup_text_ struct text message = TEXT_EMPTY;
        va_list arguments;

        va_start(arguments, format);
        text_vprintf(&message, format, arguments);
        va_end(arguments);
        if (!json) {
                puts(message.data ? message.data : "");
        } else {
                answer = answer ? answer : cJSON_CreateObject();
                cJSON_AddTrueToObject(answer, "done");
                cJSON_AddStringToObject(answer, "message", message.data ? message.data : "");
                (void)ctl_print_json(answer);
        }
        cJSON_Delete(answer);
        return EXIT_CODE_OK;
}

void ctl_print_yaml(const cJSON *answer)
{
        _cleanup_text_ struct text yaml = TEXT_EMPTY;

        manifest_write(&yaml, answer);
        fputs(yaml.data ? yaml.data : "", stdout);
}

int ctl_print_json(const cJSON *answer)
{
        _cleanup_free_ char *json = cJSON_Print(answer);

        puts(json ? json : "{}");
        return json ? 0 : -1;
}

int ctl_show(const char *runtime_directory, const char *command, const char *const *argument, enum form form,
             void (*print)(const cJSON *answer, const void *userdata), const void *userdata)
{
        static const char *const none[] = {NULL};
        _cleanup_error_ struct error error = ERROR_NONE;
        cJSON *answer = NULL;
        int r = ctl_query_about(runtime_directory, command, (char **)(uintptr_t)(argument ? argument : none),
                                &answer, &error);

        if (r < 0)
                return ctl_failed(r, &error);
        if (form == FORM_JSON)
                (void)ctl_print_json(answer);
        else if (form == FORM_YAML)
                ctl_print_yaml(answer);
        else
                print(answer, userdata);
        cJSON_Delete(answer);
        return EXIT_CODE_OK;
}
