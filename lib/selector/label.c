/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A requirement is a key alone ("key", "!key"), or a key, an operator and a value or a list of values in
 * brackets. `in` and `notin` are words like others where a key or a value stands.
 */
#include "selector/label.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SPACE    " \t\r\n"
#define WORD_END SPACE "=!(),<>"

#define NAME_MAX_LENGTH   63
#define PREFIX_MAX_LENGTH 253

struct parser {
        const char *text, *place; /* the whole, and what is to be read next */
        struct error *error;
};

/* ---- tokens */

static void skip_space(struct parser *parser)
{
        parser->place += strspn(parser->place, SPACE);
}

/* How long the word is that begins here, or 0. */
static size_t word_length(const struct parser *parser)
{
        return strcspn(parser->place, WORD_END);
}

/* true: the sign stood here, and is read. */
static bool take_sign(struct parser *parser, const char *sign)
{
        size_t length = strlen(sign);

        if (strncmp(parser->place, sign, length) != 0)
                return false;
        parser->place += length;
        skip_space(parser);
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
static bool is_name(const char *name, size_t length)
{
        if (length == 0 || length > NAME_MAX_LENGTH || !isalnum((unsigned char)name[0]) ||
            !isalnum((unsigned char)name[length - 1]))
                return false;
        for (size_t i = 0; i < length; i++)
                if (!isalnum((unsigned char)name[i]) && !strchr("-_.", name[i]))
                        return false;
        return true;
}

static bool is_prefix(const char *prefix, size_t length)
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

static bool is_key(const char *key, size_t length)
{
        const char *slash = memchr(key, '/', length);
        size_t prefix = slash ? (size_t)(slash - key) : 0;

        if (!slash)
                return is_name(key, length);
        return is_prefix(key, prefix) && is_name(slash + 1, length - prefix - 1);
}

static int take_key(struct parser *parser, struct requirement *requirement)
{
        size_t length = word_length(parser);

        if (length == 0)
                return expected(parser, "the key of a label");
        if (!is_key(parser->place, length))
                return error_set(parser->error, -EINVAL,
                                 "\"%.*s\" is not a key of a label, like app or example.com/app",
                                 (int)length, parser->place);
        requirement->key = strndup(parser->place, length);
        parser->place += length;
        skip_space(parser);
        return requirement->key ? 0 : -ENOMEM;
}

/* The empty value is one. */
static int take_label_value(struct parser *parser, struct requirement *requirement)
{
        size_t length = word_length(parser);
        int r;

        if (length > 0 && !is_name(parser->place, length))
                return error_set(
                        parser->error, -EINVAL,
                        "\"%.*s\" is not a value of a label: at most 63 letters, digits, '-', '_' and '.', "
                        "with a letter or digit at both ends",
                        (int)length, parser->place);
        r = requirement_add_value(requirement, strndup(parser->place, length));
        parser->place += length;
        skip_space(parser);
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

        skip_space(&parser);
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
