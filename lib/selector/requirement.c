/* SPDX-License-Identifier: Apache-2.0 */
#include "selector/requirement.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Adds a requirement at the head of the list. */
static struct requirement *requirement_add(struct requirement **list)
{
        struct requirement *requirement = calloc(1, sizeof(*requirement));

        if (!requirement)
                return NULL;
        requirement->next = *list;
        *list = requirement;
        return requirement;
}

/* Takes the value over, also when this fails; a NULL is no memory. */
static int requirement_add_value(struct requirement *requirement, char *value)
{
        char **grown =
                value ? reallocarray(requirement->value, requirement->count + 1, sizeof(char *)) : NULL;

        if (!grown) {
                free(value);
                return -ENOMEM;
        }
        requirement->value = grown;
        requirement->value[requirement->count++] = value;
        return 0;
}

void requirements_free(struct requirement *list)
{
        while (list) {
                struct requirement *next = list->next;

                for (size_t i = 0; i < list->count; i++)
                        free(list->value[i]);
                free(list->value);
                free(list->key);
                free(list);
                list = next;
        }
}

void requirements_free_pointer(struct requirement **list)
{
        requirements_free(*list);
}

/* ---- matching */

static bool has_value(const struct requirement *requirement, const char *value)
{
        for (size_t i = 0; i < requirement->count; i++)
                if (strcmp(requirement->value[i], value) == 0)
                        return true;
        return false;
}

/* Both must be integers. */
static int compare_integers(const char *a, const char *b, bool *ret_valid)
{
        char *a_end, *b_end;
        long long x = strtoll(a, &a_end, 10), y = strtoll(b, &b_end, 10);

        *ret_valid = *a && *b && !*a_end && !*b_end;
        return x < y ? -1 : x > y;
}

bool requirement_matches(const struct requirement *requirement, const char *value)
{
        bool valid = false;
        int order;

        switch (requirement->operation) {
        case SELECTOR_EXISTS:
                return value != NULL;
        case SELECTOR_ABSENT:
                return value == NULL;
        case SELECTOR_EQUALS:
        case SELECTOR_IN:
                return value && has_value(requirement, value);
        case SELECTOR_NOT_EQUALS:
        case SELECTOR_NOT_IN:
                return !value || !has_value(requirement, value);
        case SELECTOR_GREATER:
        case SELECTOR_LESS:
                order = value ? compare_integers(value, requirement->value[0], &valid) : 0;
                return valid && (requirement->operation == SELECTOR_GREATER ? order > 0 : order < 0);
        }
        return false;
}

/*
 * A requirement is a key alone ("key", "!key"), or a key, an operator and a value or a list of values in
 * brackets. `in` and `notin` are words like others in the place of a key or a value.
 */

#define SPACE    " \t\r\n"
#define WORD_END SPACE "=!(),<>"

#define NAME_MAX_LENGTH   63
#define PREFIX_MAX_LENGTH 253

struct parser {
        const char *text, *place; /* the whole, and what is to be read next */
        struct error *error;
};

/* ---- tokens */

static void parser_skip_space(struct parser *parser)
{
        parser->place += strspn(parser->place, SPACE);
}

/* How long the word is that begins here, or 0. */
static size_t word_length(const struct parser *parser)
{
        return strcspn(parser->place, WORD_END);
}

/* true: the sign was here, and is read. */
static bool take_sign(struct parser *parser, const char *sign)
{
        size_t length = strlen(sign);

        if (strncmp(parser->place, sign, length) != 0)
                return false;
        parser->place += length;
        parser_skip_space(parser);
        return true;
}

static bool take_keyword(struct parser *parser, const char *word)
{
        return word_length(parser) == strlen(word) && take_sign(parser, word);
}

static bool at_end(const struct parser *parser)
{
        return *parser->place == '\0' || *parser->place == ',';
}

static int expected(const struct parser *parser, const char *what)
{
        size_t length = word_length(parser);

        if (*parser->place == '\0')
                return error_set(parser->error, -EINVAL, "%s is expected at the end of \"%s\"", what,
                                 parser->text);
        return error_set(parser->error, -EINVAL,
                         "%s is expected instead of \"%.*s\" (character %zu of \"%s\")", what,
                         length > 0 ? (int)length : 1, parser->place,
                         (size_t)(parser->place - parser->text) + 1, parser->text);
}

/* ---- keys and values */

/* Letters and digits at both ends, and - _ . between them. */
static bool is_label_name(const char *name, size_t length)
{
        if (length == 0 || length > NAME_MAX_LENGTH || !isalnum((unsigned char)name[0]) ||
            !isalnum((unsigned char)name[length - 1]))
                return false;
        for (size_t i = 0; i < length; i++)
                if (!isalnum((unsigned char)name[i]) && !strchr("-_.", name[i]))
                        return false;
        return true;
}

static bool is_label_prefix(const char *prefix, size_t length)
{
        if (length == 0 || length > PREFIX_MAX_LENGTH)
                return false;
        for (size_t i = 0; i < length; i++) {
                bool first = i == 0 || prefix[i - 1] == '.', last = i + 1 == length || prefix[i + 1] == '.';
                bool letter = islower((unsigned char)prefix[i]) || isdigit((unsigned char)prefix[i]);

                if (prefix[i] == '.' ? first || last : !letter && (prefix[i] != '-' || first || last))
                        return false;
        }
        return true;
}

static bool is_label_key(const char *key, size_t length)
{
        const char *slash = memchr(key, '/', length);
        size_t prefix = slash ? (size_t)(slash - key) : 0;

        if (!slash)
                return is_label_name(key, length);
        return is_label_prefix(key, prefix) && is_label_name(slash + 1, length - prefix - 1);
}

static int take_key(struct parser *parser, struct requirement *requirement)
{
        size_t length = word_length(parser);

        if (length == 0)
                return expected(parser, "the key of a label");
        if (!is_label_key(parser->place, length))
                return error_set(parser->error, -EINVAL,
                                 "\"%.*s\" is not a key of a label, like app or example.com/app",
                                 (int)length, parser->place);
        requirement->key = strndup(parser->place, length);
        parser->place += length;
        parser_skip_space(parser);
        return requirement->key ? 0 : -ENOMEM;
}

/* The empty value is one. */
static int take_label_value(struct parser *parser, struct requirement *requirement)
{
        size_t length = word_length(parser);
        int r;

        if (length > 0 && !is_label_name(parser->place, length))
                return error_set(
                        parser->error, -EINVAL,
                        "\"%.*s\" is not a value of a label: at most 63 letters, digits, '-', '_' and '.', "
                        "with a letter or digit at both ends",
                        (int)length, parser->place);
        r = requirement_add_value(requirement, strndup(parser->place, length));
        parser->place += length;
        parser_skip_space(parser);
        return r;
}

static int take_values(struct parser *parser, struct requirement *requirement)
{
        if (!take_sign(parser, "("))
                return expected(parser, "a list of values, like (a,b),");
        if (*parser->place == ')')
                return expected(parser, "a value");
        do {
                int r = take_label_value(parser, requirement);

                if (r < 0)
                        return r;
        } while (take_sign(parser, ","));
        return take_sign(parser, ")") ? 0 : expected(parser, "a comma or )");
}

/* ---- requirements */

static int take_integer(struct parser *parser, struct requirement *requirement)
{
        const char *value = requirement->value[0];
        char *end = NULL;

        errno = 0;
        (void)strtoll(value, &end, 10);
        if (!value[0] || *end || errno != 0)
                return error_set(parser->error, -EINVAL,
                                 "> and < compare with whole numbers, and \"%s\" is not one", value);
        return 0;
}

static int take_operation(struct parser *parser, struct requirement *requirement)
{
        bool compares = false;
        int r;

        if (take_keyword(parser, "in")) {
                requirement->operation = SELECTOR_IN;
                return take_values(parser, requirement);
        }
        if (take_keyword(parser, "notin")) {
                requirement->operation = SELECTOR_NOT_IN;
                return take_values(parser, requirement);
        }
        if (take_sign(parser, "!="))
                requirement->operation = SELECTOR_NOT_EQUALS;
        else if (take_sign(parser, "==") || take_sign(parser, "="))
                requirement->operation = SELECTOR_EQUALS;
        else if ((compares = take_sign(parser, ">")))
                requirement->operation = SELECTOR_GREATER;
        else if ((compares = take_sign(parser, "<")))
                requirement->operation = SELECTOR_LESS;
        else
                return expected(parser, "one of =, ==, !=, in, notin, < and >");
        if (!at_end(parser) && word_length(parser) == 0)
                return expected(parser, "a value");
        r = take_label_value(parser, requirement);
        return r == 0 && compares ? take_integer(parser, requirement) : r;
}

static int take_requirement(struct parser *parser, struct requirement *requirement)
{
        bool absent = *parser->place == '!' && take_sign(parser, "!");
        int r = take_key(parser, requirement);

        requirement->operation = absent ? SELECTOR_ABSENT : SELECTOR_EXISTS;
        if (r == 0 && !absent && !at_end(parser))
                r = take_operation(parser, requirement);
        return r;
}

int label_selector_parse(const char *text, struct requirement **ret, struct error *error)
{
        _cleanup_(requirements_free_pointer) struct requirement *list = NULL;
        struct parser parser = {.text = text, .place = text, .error = error};

        parser_skip_space(&parser);
        if (*parser.place) {
                do {
                        struct requirement *requirement = requirement_add(&list);
                        int r = requirement ? take_requirement(&parser, requirement) : -ENOMEM;

                        if (r < 0)
                                return r;
                } while (take_sign(&parser, ","));
                if (*parser.place)
                        return expected(&parser, "a comma");
        }
        *ret = list;
        list = NULL;
        return 0;
}

/* ---- fields. The server splits at commas and trims nothing, so that a space belongs to the field or to its value. */

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
