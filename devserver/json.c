/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/json.h"

#include <string.h>

#include "base/text.h"

#define DIGITS_MAX 15

/* Begins a string that was a number. Texts that have this character themselves are parsed without marks. */
#define MARK         '\x01'
#define MARK_ESCAPED "\\u0001"

static bool is_number_byte(char c)
{
        return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

static size_t number_length(const char *text, size_t size)
{
        size_t length = 0;

        while (length < size && is_number_byte(text[length]))
                length++;
        return length;
}

static size_t digits_in(const char *text, size_t length)
{
        size_t digits = 0;

        for (size_t i = 0; i < length; i++)
                digits += text[i] >= '0' && text[i] <= '9';
        return digits;
}

/* From an opening quote to behind the closing one. */
static size_t string_length(const char *text, size_t size)
{
        size_t i = 1;

        while (i < size && text[i] != '"')
                i += text[i] == '\\' && i + 1 < size ? 2 : 1;
        return i < size ? i + 1 : size;
}

/* One token, or any other byte. */
static size_t token_length(const char *text, size_t size)
{
        if (text[0] == '"')
                return string_length(text, size);
        if (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'))
                return number_length(text, size);
        return 1;
}

static bool is_long_number(const char *text, size_t length)
{
        return text[0] != '"' && length > DIGITS_MAX && digits_in(text, length) > DIGITS_MAX;
}

static bool has_long_number(const char *text, size_t size)
{
        for (size_t i = 0; i < size;) {
                size_t length = token_length(text + i, size - i);

                if (is_long_number(text + i, length))
                        return true;
                i += length;
        }
        return false;
}

static const char *skip_digits(const char *text, const char *end)
{
        while (text < end && *text >= '0' && *text <= '9')
                text++;
        return text;
}

/* As RFC 8259 has it: what is printed as it came must not break the JSON around it. */
static bool is_number(const char *text, size_t length)
{
        const char *p = text, *end = text + length, *digits;

        p += *p == '-';
        digits = p;
        p = skip_digits(p, end);
        if (p == digits || (*digits == '0' && p > digits + 1))
                return false;
        if (p < end && *p == '.') {
                digits = ++p;
                p = skip_digits(p, end);
                if (p == digits)
                        return false;
        }
        if (p < end && (*p == 'e' || *p == 'E')) {
                p++;
                p += p < end && (*p == '+' || *p == '-');
                digits = p;
                p = skip_digits(p, end);
                if (p == digits)
                        return false;
        }
        return p == end;
}

static void mark_numbers(const char *text, size_t size, struct text *out)
{
        static const char begin[] = {'"', MARK};

        for (size_t i = 0; i < size;) {
                size_t length = token_length(text + i, size - i);
                bool mark = is_long_number(text + i, length) && is_number(text + i, length);

                if (mark)
                        text_append(out, begin, sizeof(begin));
                text_append(out, text + i, length);
                if (mark)
                        text_append(out, "\"", 1);
                i += length;
        }
}

/* What was marked becomes raw. Depth is bounded by cJSON's parser. */
static void unmark(cJSON *value)
{
        for (cJSON *child = value->child; child; child = child->next)
                unmark(child);
        if (cJSON_IsString(value) && value->valuestring[0] == MARK) {
                memmove(value->valuestring, value->valuestring + 1, strlen(value->valuestring));
                value->type = cJSON_Raw;
        }
}

cJSON *json_parse(const char *text, size_t size)
{
        _cleanup_text_ struct text marked = TEXT_EMPTY;
        cJSON *value;

        if (!text)
                return NULL;
        if (!has_long_number(text, size) || memchr(text, MARK, size) ||
            memmem(text, size, MARK_ESCAPED, sizeof(MARK_ESCAPED) - 1))
                return cJSON_ParseWithLength(text, size);
        mark_numbers(text, size, &marked);
        value = marked.failed ? NULL : cJSON_ParseWithLength(marked.data, marked.size);
        if (value)
                unmark(value);
        return value;
}
