/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#define TEXT_FIRST 256

static int text_fail(struct text *text)
{
        text->failed = true;
        return -ENOMEM;
}

int text_reserve(struct text *text, size_t additional)
{
        size_t needed, allocated = text->allocated ? text->allocated : TEXT_FIRST;
        char *data;

        assert(text->size < text->allocated || (text->size == 0 && text->allocated == 0));
        if (text->failed)
                return -ENOMEM;
        if (__builtin_add_overflow(text->size, additional, &needed) ||
            __builtin_add_overflow(needed, (size_t)1, &needed))
                return text_fail(text);
        if (needed <= text->allocated)
                return 0;
        while (allocated < needed)
                if (__builtin_mul_overflow(allocated, (size_t)2, &allocated))
                        return text_fail(text);
        data = realloc(text->data, allocated);
        if (!data)
                return text_fail(text);
        text->data = data;
        text->allocated = allocated;
        return 0;
}

int text_append(struct text *text, const void *bytes, size_t size)
{
        int r = text_reserve(text, size);

        if (r < 0)
                return r;
        if (size > 0)
                memcpy(text->data + text->size, bytes, size);
        text->size += size;
        text->data[text->size] = '\0';
        return 0;
}

int text_append_string(struct text *text, const char *string)
{
        return string ? text_append(text, string, strlen(string)) : 0;
}

int text_vprintf(struct text *text, const char *format, va_list arguments)
{
        va_list copy;
        int length;

        va_copy(copy, arguments);
        length = vsnprintf(NULL, 0, format, copy);
        va_end(copy);
        if (length < 0 || text_reserve(text, (size_t)length) < 0)
                return text_fail(text);
        vsnprintf(text->data + text->size, (size_t)length + 1, format, arguments);
        text->size += (size_t)length;
        return 0;
}

int text_printf(struct text *text, const char *format, ...)
{
        va_list arguments;
        int r;

        va_start(arguments, format);
        r = text_vprintf(text, format, arguments);
        va_end(arguments);
        return r;
}

void text_consume(struct text *text, size_t size)
{
        if (size >= text->size) {
                text_clear(text);
                return;
        }
        memmove(text->data, text->data + size, text->size - size + 1);
        text->size -= size;
}

void text_clear(struct text *text)
{
        text->size = 0;
        text->failed = false;
        if (text->data)
                text->data[0] = '\0';
}

void text_done(struct text *text)
{
        free(text->data);
        *text = TEXT_EMPTY;
}

char *text_take(struct text *text)
{
        char *data;

        if (text->failed || text_reserve(text, 0) < 0)
                return NULL;
        data = text->data;
        data[text->size] = '\0';
        *text = TEXT_EMPTY;
        return data;
}

/* ---- JSON */

size_t utf8_sequence(const char *bytes, size_t size)
{
        const unsigned char *b = (const unsigned char *)bytes;
        size_t length;

        if (size == 0)
                return 0;
        if (b[0] < 0x80)
                return 1;
        if (b[0] >= 0xc2 && b[0] <= 0xdf)
                length = 2;
        else if ((b[0] & 0xf0) == 0xe0)
                length = 3;
        else if (b[0] >= 0xf0 && b[0] <= 0xf4)
                length = 4;
        else
                return 0;
        if (size < length)
                return 0;
        for (size_t i = 1; i < length; i++)
                if ((b[i] & 0xc0) != 0x80)
                        return 0;
        /* overlong forms, surrogates, above U+10FFFF */
        if ((b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xed && b[1] > 0x9f) ||
            (b[0] == 0xf0 && b[1] < 0x90) || (b[0] == 0xf4 && b[1] > 0x8f))
                return 0;
        return length;
}

static int append_escaped(struct text *text, unsigned char byte)
{
        switch (byte) {
        case '"':
                return text_append(text, "\\\"", 2);
        case '\\':
                return text_append(text, "\\\\", 2);
        case '\n':
                return text_append(text, "\\n", 2);
        case '\t':
                return text_append(text, "\\t", 2);
        case '\r':
                return text_append(text, "\\r", 2);
        default:
                return text_printf(text, "\\u%04x", byte);
        }
}

int text_json_bytes(struct text *text, const char *bytes, size_t size)
{
        size_t i = 0;

        text_append(text, "\"", 1);
        while (i < size) {
                unsigned char byte = (unsigned char)bytes[i];
                size_t length = utf8_sequence(bytes + i, size - i);

                if (length == 0) {
                        text_append(text, "\xef\xbf\xbd", 3);
                        length = 1;
                } else if (byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7f) {
                        append_escaped(text, byte);
                } else {
                        text_append(text, bytes + i, length);
                }
                i += length;
        }
        return text_append(text, "\"", 1);
}

int text_json_string(struct text *text, const char *string)
{
        return text_json_bytes(text, string ? string : "", string ? strlen(string) : 0);
}

int text_json_fill(struct text *text, const char *pattern, const char *const *value, size_t count)
{
        for (const char *next; (next = strchr(pattern, '?')); pattern = next + 1) {
                assert(count > 0);
                count--;
                text_append(text, pattern, (size_t)(next - pattern));
                text_json_string(text, *value++);
        }
        assert(count == 0);
        return text_append_string(text, pattern);
}

bool text_nests_too_deep(const char *string)
{
        size_t depth = 0;

        for (; (string = strpbrk(string, "[]{}")); string++) {
                if (*string == '[' || *string == '{')
                        depth++;
                else if (depth > 0)
                        depth--;
                if (depth > BRACKETS_MAX)
                        return true;
        }
        return false;
}

int text_append_escaped(struct text *text, const char *string)
{
        for (; *string; string++)
                if ((*string >= 'a' && *string <= 'z') || (*string >= 'A' && *string <= 'Z') ||
                    (*string >= '0' && *string <= '9') || strchr("-._~", *string))
                        text_append(text, string, 1);
                else
                        text_printf(text, "%%%02X", (unsigned char)*string);
        return text->failed ? -ENOMEM : 0;
}

void text_append_base64(struct text *text, const char *input)
{
        static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        size_t size = strlen(input);

        for (size_t i = 0; i < size; i += 3) {
                unsigned bits = (unsigned)(unsigned char)input[i] << 16;
                char quad[4];

                if (i + 1 < size)
                        bits |= (unsigned)(unsigned char)input[i + 1] << 8;
                if (i + 2 < size)
                        bits |= (unsigned char)input[i + 2];
                for (int j = 0; j < 4; j++)
                        quad[j] = alphabet[bits >> (18 - 6 * j) & 63];
                if (i + 1 >= size)
                        quad[2] = '=';
                if (i + 2 >= size)
                        quad[3] = '=';
                text_append(text, quad, 4);
        }
}

char *format_string(const char *format, ...)
{
        va_list arguments;
        char *string;
        int r;

        va_start(arguments, format);
        r = vasprintf(&string, format, arguments);
        va_end(arguments);
        return r < 0 ? NULL : string;
}

int text_replace(char **place, const char *text)
{
        char *copy;

        if (*place && strcmp(*place, text) == 0)
                return 0;
        copy = strdup(text);
        if (!copy)
                return -ENOMEM;
        free(*place);
        *place = copy;
        return 0;
}

size_t word_distance(const char *a, const char *b)
{
        size_t row[64], length = strlen(b);

        if (length >= ELEMENTS(row))
                return SIZE_MAX;
        for (size_t j = 0; j <= length; j++)
                row[j] = j;
        for (size_t i = 1; *a; a++, i++) {
                size_t diagonal = row[0];

                row[0] = i;
                for (size_t j = 1; j <= length; j++) {
                        size_t replace = diagonal + (*a != b[j - 1]);
                        size_t best = row[j] + 1 < row[j - 1] + 1 ? row[j] + 1 : row[j - 1] + 1;

                        diagonal = row[j];
                        row[j] = replace < best ? replace : best;
                }
        }
        return row[length];
}

static int hex_value(const char *at, unsigned *ret)
{
        unsigned value = 0;

        for (size_t i = 0; i < 4; i++) {
                char c = at[i];

                if (c >= '0' && c <= '9')
                        value = value << 4 | (unsigned)(c - '0');
                else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
                        value = value << 4 | (unsigned)((c | 0x20) - 'a' + 10);
                else
                        return -EBADMSG;
        }
        *ret = value;
        return 0;
}

/* Decodes what comes after "\u". */
static int decode_unicode(const char **at, const char *end, unsigned *ret)
{
        unsigned low;

        if (end - *at < 4 || hex_value(*at, ret) < 0)
                return -EBADMSG;
        *at += 4;
        if (*ret < 0xd800 || *ret >= 0xe000)
                return 0;
        if (*ret < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u' &&
            hex_value(*at + 2, &low) == 0 && low >= 0xdc00 && low < 0xe000) {
                *at += 6;
                *ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
        } else {
                *ret = 0xfffd;
        }
        return 0;
}

int json_escape_decode(const char **at, const char *end, unsigned *ret)
{
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        const char *found;

        if (*at >= end)
                return -EBADMSG;
        if (**at == 'u') {
                (*at)++;
                return decode_unicode(at, end, ret);
        }
        found = memchr(from, **at, sizeof(from) - 1);
        if (!found)
                return -EBADMSG;
        (*at)++;
        *ret = (unsigned char)to[found - from];
        return 0;
}

size_t utf8_encode(unsigned code, char *out)
{
        char *at = out;

        if (code < 0x80) {
                *at++ = (char)code;
                return 1;
        }
        if (code < 0x800) {
                *at++ = (char)(0xc0 | code >> 6);
        } else {
                if (code < 0x10000) {
                        *at++ = (char)(0xe0 | code >> 12);
                } else {
                        *at++ = (char)(0xf0 | code >> 18);
                        *at++ = (char)(0x80 | (code >> 12 & 0x3f));
                }
                *at++ = (char)(0x80 | (code >> 6 & 0x3f));
        }
        *at++ = (char)(0x80 | (code & 0x3f));
        return (size_t)(at - out);
}

void json_string(struct text *json, const char *name, const char *value)
{
        text_printf(json, "\"%s\":", name);
        text_json_string(json, value ? value : "");
        text_append(json, ",", 1);
}

void json_uint64(struct text *json, const char *name, uint64_t value)
{
        text_printf(json, "\"%s\":%" PRIu64 ",", name, value);
}

void json_bool(struct text *json, const char *name, bool value)
{
        text_printf(json, "\"%s\":%s,", name, value ? "true" : "false");
}

void json_close(struct text *json, const char *bracket)
{
        if (json->size > 0 && json->data[json->size - 1] == ',')
                json->size--;
        text_append_string(json, bracket);
}

bool ends_with(const char *text, const char *end)
{
        size_t size = strlen(text), end_size = strlen(end);

        return size >= end_size && strcmp(text + size - end_size, end) == 0;
}
