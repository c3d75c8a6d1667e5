/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/schema/schema-mistakes.h"

#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/tree/form.h"
#include "devserver/tree/tree.h"
#include "json/json.h"

static void append_steps(struct text *text, const struct step *step)
{
        if (!step)
                return;
        append_steps(text, step->parent);
        if (!step->name)
                text_printf(text, "[%zu]", step->index);
        else if (step->is_key)
                text_printf(text, "[%s]", step->name);
        else
                text_printf(text, "%s%s", text->size > 0 ? "." : "", step->name);
}

char *step_describe(const char *prefix, const struct step *step)
{
        struct text text = TEXT_EMPTY;

        text_append_string(&text, prefix);
        append_steps(&text, step);
        return text_take(&text);
}

static bool is_known(const struct mistakes *mistakes, const char *field, const char *message)
{
        const cJSON *cause;

        cJSON_ArrayForEach(cause, mistakes->cause)
        {
                if (strcmp(json_text(cause, "field"), field) == 0 &&
                    strcmp(json_text(cause, "message"), message) == 0)
                        return true;
        }
        return false;
}

static void add_cause(struct mistakes *mistakes, cJSON *cause)
{
        if (mistakes->count == MISTAKES_MAX ||
            is_known(mistakes, json_text(cause, "field"), json_text(cause, "message"))) {
                cJSON_Delete(cause);
                return;
        }
        if (!mistakes->cause)
                mistakes->cause = cJSON_CreateArray();
        cJSON_AddItemToArray(mistakes->cause, cause);
        mistakes->count++;
}

void mistake_add(struct mistakes *mistakes, enum mistake_type type, const char *field, const char *value,
                 const char *detail, ...)
{
        static const struct {
                const char *reason, *text;
        } table[] = {
                [MISTAKE_INVALID] = {"FieldValueInvalid", "Invalid value"},
                [MISTAKE_TYPE_INVALID] = {"FieldValueTypeInvalid", "Invalid value"},
                [MISTAKE_REQUIRED] = {"FieldValueRequired", "Required value"},
                [MISTAKE_NOT_SUPPORTED] = {"FieldValueNotSupported", "Unsupported value"},
                [MISTAKE_DUPLICATE] = {"FieldValueDuplicate", "Duplicate value"},
                [MISTAKE_FORBIDDEN] = {"FieldValueForbidden", "Forbidden"},
                [MISTAKE_TOO_LONG] = {"FieldValueTooLong", "Too long"},
                [MISTAKE_TOO_MANY] = {"FieldValueTooMany", "Too many"},
        };
        _cleanup_text_ struct text message = TEXT_EMPTY, behind = TEXT_EMPTY;
        va_list arguments;
        cJSON *cause;

        if (mistakes->count == MISTAKES_MAX)
                return;
        va_start(arguments, detail);
        text_vprintf(&behind, detail, arguments);
        va_end(arguments);
        text_printf(&message, "%s%s%s%s%s", table[type].text, value ? ": " : "", value ? value : "",
                    behind.size > 0 ? ": " : "", behind.size > 0 ? behind.data : "");
        cause = cJSON_CreateObject();
        cJSON_AddStringToObject(cause, "reason", table[type].reason);
        cJSON_AddStringToObject(cause, "message", message.data ? message.data : "");
        cJSON_AddStringToObject(cause, "field", field ? field : "");
        add_cause(mistakes, cause);
}

void mistakes_merge(struct mistakes *mistakes, struct mistakes *more)
{
        cJSON *cause;

        while (more->cause && (cause = cJSON_DetachItemFromArray(more->cause, 0)))
                add_cause(mistakes, cause);
        mistakes_done(more);
}

void mistakes_done(struct mistakes *mistakes)
{
        cJSON_Delete(mistakes->cause);
        *mistakes = (struct mistakes){0};
}

char *mistakes_describe(const struct mistakes *mistakes)
{
        struct text text = TEXT_EMPTY;
        const cJSON *cause;

        text_append_string(&text, mistakes->count > 1 ? "[" : "");
        cJSON_ArrayForEach(cause, mistakes->cause)
                text_printf(&text, "%s%s: %s", cause == mistakes->cause->child ? "" : ", ",
                            json_text(cause, "field"), json_text(cause, "message"));
        text_append_string(&text, mistakes->count > 1 ? "]" : "");
        return text_take(&text);
}

char *text_quote(const char *text)
{
        static const char plain[] = "\a\b\f\n\r\t\v\"\\", escaped[] = "abfnrtv\"\\";
        struct text out = TEXT_EMPTY;

        text_append_string(&out, "\"");
        for (; *text; text++) {
                const char *at = strchr(plain, *text);

                if (at)
                        text_printf(&out, "\\%c", escaped[at - plain]);
                else if ((unsigned char)*text < ' ' || *text == '\x7f')
                        text_printf(&out, "\\x%02x", (unsigned char)*text);
                else
                        text_append(&out, text, 1);
        }
        text_append_string(&out, "\"");
        return text_take(&out);
}

char *value_describe(const cJSON *value)
{
        cJSON *copy;
        char *text;

        if (cJSON_IsString(value))
                return text_quote(value->valuestring);
        copy = cJSON_Duplicate(value, true);
        form_arrange(copy, false);
        text = form_print(copy);
        cJSON_Delete(copy);
        return text;
}
