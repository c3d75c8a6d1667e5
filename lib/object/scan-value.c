/* SPDX-License-Identifier: Apache-2.0 */
#include "object/scan-value.h"

#include <errno.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

/* The first quote or backslash; `end`: there is none. Both at once, and 16 or 32 bytes at a time where the
 * processor can: most of what an object holds is text, and each pass over it comes by here. */
#ifdef __SSE2__
#define PIECE ((ptrdiff_t)sizeof(__m128i))

static inline __m128i ends_string(const char *at)
{
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);

        return _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                            _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
}

/* Moves over pieces in which there is none. */
static const char *pass_pieces(const char *at, const char *end)
{
        while (end - at >= 4 * PIECE) {
                __m128i low = _mm_or_si128(ends_string(at), ends_string(at + PIECE));
                __m128i high = _mm_or_si128(ends_string(at + 2 * PIECE), ends_string(at + 3 * PIECE));

                if (_mm_movemask_epi8(_mm_or_si128(low, high)) != 0)
                        break;
                at += 4 * PIECE;
        }
        return at;
}

__attribute__((target("avx2"))) static const char *pass_wide_pieces(const char *at, const char *end)
{
        const __m256i quote = _mm256_set1_epi8('"'), backslash = _mm256_set1_epi8('\\');

        while (end - at >= 4 * PIECE) {
                __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)at);
                __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(at + 2 * PIECE));
                __m256i found = _mm256_or_si256(
                        _mm256_or_si256(_mm256_cmpeq_epi8(low, quote), _mm256_cmpeq_epi8(low, backslash)),
                        _mm256_or_si256(_mm256_cmpeq_epi8(high, quote), _mm256_cmpeq_epi8(high, backslash)));

                if (!_mm256_testz_si256(found, found))
                        break;
                at += 4 * PIECE;
        }
        return at;
}

static const char *find_long_string_end(const char *at, const char *end)
{
        at = __builtin_cpu_supports("avx2") ? pass_wide_pieces(at, end) : pass_pieces(at, end);
        for (; end - at >= PIECE; at += PIECE) {
                unsigned mask = (unsigned)_mm_movemask_epi8(ends_string(at));

                if (mask != 0)
                        return at + __builtin_ctz(mask);
        }
        while (at < end && *at != '"' && *at != '\\')
                at++;
        return at;
}

static inline const char *find_string_end(const char *at, const char *end)
{
        if (end - at >= PIECE) {
                unsigned mask = (unsigned)_mm_movemask_epi8(ends_string(at));

                if (mask != 0)
                        return at + __builtin_ctz(mask);
                at += PIECE;
        }
        return find_long_string_end(at, end);
}
#else
static const char *find_string_end(const char *at, const char *end)
{
        while (at < end && *at != '"' && *at != '\\')
                at++;
        return at;
}
#endif

/* Inside a string: moves past its closing quote. */
static bool skip_string(struct value_cursor *cursor, const char *input, size_t size)
{
        const char *at = input + cursor->position, *end = input + size;

        while ((at = find_string_end(at, end)) < end && *at != '"') {
                if (at + 1 == end) {
                        cursor->position = (size_t)(at - input); /* what is escaped comes later */
                        return false;
                }
                at += 2;
        }
        cursor->position = at < end ? (size_t)(at - input) + 1 : size;
        return at < end;
}

static void open_bracket(struct value_cursor *cursor, bool is_object)
{
        uint64_t bit = UINT64_C(1) << (cursor->depth % 64);

        if (cursor->depth < SCAN_DEPTH_MAX) {
                uint64_t *word = &cursor->is_object[cursor->depth / 64];

                *word = is_object ? *word | bit : *word & ~bit;
        }
        cursor->depth++;
}

static int close_bracket(struct value_cursor *cursor, bool is_object)
{
        bool expected;

        if (cursor->depth == 0)
                return -EBADMSG;
        if (--cursor->depth >= SCAN_DEPTH_MAX)
                return 0;
        expected = cursor->is_object[cursor->depth / 64] >> (cursor->depth % 64) & 1;
        return expected == is_object ? 0 : -EBADMSG;
}

/* The bytes of numbers, true, false and null; and those between values. */
static const bool literal_byte[256] = {
        ['0' ... '9'] = true, ['a' ... 'z'] = true, ['-'] = true, ['+'] = true, ['.'] = true, ['E'] = true,
};
static const bool plain_byte[256] = {
        ['0' ... '9'] = true, ['a' ... 'z'] = true, ['-'] = true,  ['+'] = true,
        ['.'] = true,         ['E'] = true,         [','] = true,  [':'] = true,
        [' '] = true,         ['\n'] = true,        ['\r'] = true, ['\t'] = true,
};

static bool is_literal_byte(char c)
{
        return literal_byte[(unsigned char)c];
}

/* Inside of brackets: everything up to the next bracket, to a string with escapes, or to one that this piece
 * does not end. Most of an object is passed here. */
static void skip_inside(struct value_cursor *cursor, const char *input, size_t size)
{
        const char *at = input + cursor->position, *end = input + size;

        while (at < end) {
                if (*at == '"') {
                        const char *quote = find_string_end(at + 1, end);

                        if (quote == end || *quote != '"')
                                break;
                        at = quote;
                } else if (!plain_byte[(unsigned char)*at]) {
                        break;
                }
                at++;
        }
        cursor->position = (size_t)(at - input);
}

/* Handles one byte outside of strings that skip_inside() did not skip, or the value's first byte. 1 if it ends
 * the value. */
static int cursor_step(struct value_cursor *cursor, char c)
{
        int r;

        switch (c) {
        case '"':
                cursor->in_string = true;
                return 0;
        case '{':
        case '[':
                open_bracket(cursor, c == '{');
                return 0;
        case '}':
        case ']':
                r = close_bracket(cursor, c == '}');
                return r < 0 ? r : cursor->depth == 0;
        default:
                if (!is_literal_byte(c))
                        return -EBADMSG;
                cursor->in_literal = true;
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
                if (cursor->depth > 0)
                        skip_inside(cursor, input, size);
                if (cursor->position == size)
                        return 0;
                r = cursor_step(cursor, input[cursor->position++]);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* After an opening bracket: whether something is in it. */
static bool is_filled(const char *at, const char *end)
{
        while (at < end && json_is_space(*at))
                at++;
        return at < end && *at != ']' && *at != '}';
}

/* A value is the first one in its brackets, or comes after a comma. */
size_t scan_count_values(const char *input, size_t size)
{
        const char *at = input, *end = input + size;
        size_t count = 1;

        for (; at < end; at++) {
                if (*at == '"') {
                        while ((at = find_string_end(at + 1, end)) < end && *at == '\\' && at + 1 < end)
                                at++;
                        if (at == end)
                                break;
                } else if (*at == ',') {
                        count++;
                } else if (*at == '[' || *at == '{') {
                        count += is_filled(at + 1, end);
                }
        }
        return count;
}
