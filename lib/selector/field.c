/* SPDX-License-Identifier: Apache-2.0 */
/* The server splits at commas and trims nothing, so that a space belongs to the field or to its value. */
#include "selector/field.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

#define FIELD_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./"

/* How long the term is: up to a comma that no backslash precedes. */
static size_t term_length(const char *text)
{
        size_t length = 0;

        while (text[length] && text[length] != ',')
                length += text[length] == '\\' && text[length + 1] ? 2 : 1;
        return length;
}

/* The value without its backslashes; only "\\", "\," and "\=" are known. */
static int take_field_value(const char *text, size_t length, struct requirement *requirement,
                            struct error *error)
{
        _cleanup_text_ struct text value = TEXT_EMPTY;

        for (size_t i = 0; i < length; i++) {
                bool escaped = text[i] == '\\';

                i += escaped;
                if (escaped && (i == length || !strchr("\\,=", text[i])))
                        return error_set(error, -EINVAL,
                                         "a backslash stands before \\, a comma or = only (in \"%.*s\")",
                                         (int)length, text);
                if (!escaped && text[i] == '=')
                        return error_set(error, -EINVAL,
                                         "the value \"%.*s\" holds a =, which is written \\=", (int)length,
                                         text);
                text_append(&value, &text[i], 1);
        }
        return requirement_add_value(requirement, text_take(&value));
}

static int parse_term(const char *text, size_t length, struct requirement *requirement, struct error *error)
{
        size_t path = strcspn(text, "!="), sign = 1;

        while (path < length && text[path] == '!' && text[path + 1] != '=')
                path += 1 + strcspn(text + path + 1, "!=");
        if (path >= length)
                return error_set(error, -EINVAL, "\"%.*s\" has none of =, == and !=", (int)length, text);
        if (path == 0)
                return error_set(error, -EINVAL, "\"%.*s\" names no field before its %c", (int)length, text,
                                 text[0]);
        if (strspn(text, FIELD_CHARACTERS) < path)
                return error_set(error, -EINVAL, "\"%.*s\" is not a path of a field, like metadata.name",
                                 (int)path, text);
        if (text[path + 1] == '=')
                sign = 2;
        requirement->operation = text[path] == '!' ? SELECTOR_NOT_EQUALS : SELECTOR_EQUALS;
        requirement->key = strndup(text, path);
        if (!requirement->key)
                return -ENOMEM;
        return take_field_value(text + path + sign, length - path - sign, requirement, error);
}

int field_selector_parse(const char *text, struct requirement **ret, struct error *error)
{
        _cleanup_(requirements_free_pointer) struct requirement *list = NULL;

        while (*text) {
                size_t length = term_length(text);

                if (length > 0) { /* the server passes over empty terms */
                        struct requirement *requirement = requirement_add(&list);
                        int r = requirement ? parse_term(text, length, requirement, error) : -ENOMEM;

                        if (r < 0)
                                return r;
                }
                text += length + (text[length] == ',');
        }
        *ret = list;
        list = NULL;
        return 0;
}
