/* SPDX-License-Identifier: Apache-2.0 */
#include "store/scan-value.h"

#include <errno.h>
#include <string.h>

/* Inside a string: moves behind its closing quote. memchr looks at 16 or 32 bytes at once, and most strings
 * hold no escape. A quote that was found is kept over the escapes in front of it: a long text of many lines
 * is one string of many escapes, and must not cost their number times its length. */
static bool skip_string(struct value_cursor *cursor, const char *input, size_t size)
{
        const char *at = input + cursor->position, *end = input + size;
        const char *quote = NULL; /* not looked for yet */

        while (at < end) {
                const char *escape;

                if (!quote || quote < at) {
                        quote = memchr(at, '"', (size_t)(end - at));
                        if (!quote)
                                quote = end;
                }
                escape = memchr(at, '\\', (size_t)(quote - at));
                if (!escape) {
                        cursor->position = quote < end ? (size_t)(quote - input) + 1 : size;
                        return quote < end;
                }
                if (escape + 1 == end) {
                        cursor->position = (size_t)(escape - input);
                        return false;
                }
                at = escape + 2;
        }
        cursor->position = size;
        return false;
}

static int open_bracket(struct value_cursor *cursor, bool is_object)
{
        uint64_t bit = UINT64_C(1) << (cursor->depth % 64);
        uint64_t *word = &cursor->is_object[cursor->depth / 64];

        if (cursor->depth + 1 >= SCAN_DEPTH_MAX)
                return -EBADMSG;
        *word = is_object ? *word | bit : *word & ~bit;
        cursor->depth++;
        return 0;
}

static int close_bracket(struct value_cursor *cursor, bool is_object)
{
        bool expected;

        if (cursor->depth == 0)
                return -EBADMSG;
        cursor->depth--;
        expected = cursor->is_object[cursor->depth / 64] >> (cursor->depth % 64) & 1;
        return expected == is_object ? 0 : -EBADMSG;
}

static bool is_literal_byte(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' ||
               c == 'E';
}

/* One byte outside of strings. 1: it ended the value. */
static int step(struct value_cursor *cursor, char c)
{
        int r;

        switch (c) {
        case '"':
                cursor->in_string = true;
                return 0;
        case '{':
        case '[':
                return open_bracket(cursor, c == '{');
        case '}':
        case ']':
                r = close_bracket(cursor, c == '}');
                return r < 0 ? r : cursor->depth == 0;
        case ',':
        case ':':
        case ' ':
        case '\n':
        case '\r':
        case '\t':
                return cursor->depth > 0 ? 0 : -EBADMSG;
        default:
                if (!is_literal_byte(c))
                        return -EBADMSG;
                cursor->in_literal = cursor->depth == 0;
                return 0;
        }
}

int value_cursor_run(struct value_cursor *cursor, const char *input, size_t size)
{
        while (cursor->position < size) {
                int r;

                if (cursor->in_string) {
                        if (!skip_string(cursor, input, size))
                                return 0;
                        cursor->in_string = false;
                        if (cursor->depth == 0)
                                return 1;
                        continue;
                }
                if (cursor->in_literal) {
                        if (!is_literal_byte(input[cursor->position]))
                                return 1;
                        cursor->position++;
                        continue;
                }
                r = step(cursor, input[cursor->position++]);
                if (r != 0)
                        return r;
        }
        return 0;
}
