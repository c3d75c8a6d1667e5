/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A growing byte buffer, always NUL-terminated after its last byte, and a writer of JSON on top of it (for
 * programs that must not link a JSON parser).
 *
 * Growth doubles; a failed allocation sets `failed`, keeps what was there, and makes every later append a
 * no-op, so that a writer checks once at the end (text_take returns NULL).
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct text {
        char *data;       /* owned; NULL while nothing was appended */
        size_t size;      /* bytes in use, without the NUL */
        size_t allocated; /* bytes */
        bool failed;      /* an allocation failed: the content is incomplete */
};

#define TEXT_EMPTY ((struct text){0})

int text_reserve(struct text *text, size_t additional); /* 0 or -ENOMEM */
int text_append(struct text *text, const void *bytes, size_t size);
int text_append_string(struct text *text, const char *string); /* NULL appends nothing */
int text_printf(struct text *text, const char *format, ...) _printf_(2, 3);
int text_vprintf(struct text *text, const char *format, va_list arguments) _printf_(2, 0);
/* Removes the first `size` bytes. */
void text_consume(struct text *text, size_t size);
void text_clear(struct text *text); /* keeps the memory */
void text_done(struct text *text);  /* frees it */
/* The content as a string that the caller owns ("" when empty), or NULL when an append had failed. */
char *text_take(struct text *text);

/* Appends a JSON string literal, quotes included. Control characters are escaped; invalid UTF-8 becomes
 * U+FFFD, so that the output is always valid JSON. */
int text_json_string(struct text *text, const char *string);
int text_json_bytes(struct text *text, const char *bytes, size_t size);
/* Appends the pattern with a text, as a JSON string, in the place of each `?`: text_json(out, "{\"uid\":?}", uid). */
#define text_json(text, pattern, ...)                                                                       \
        text_json_fill(text, pattern, (const char *const[]){__VA_ARGS__},                                   \
                       ELEMENTS(((const char *const[]){__VA_ARGS__})))
int text_json_fill(struct text *text, const char *pattern, const char *const *value, size_t count);

/* Members of a JSON object. Each is written with a comma after it; the last one is taken
 * back by json_close(). */
void json_string(struct text *json, const char *name, const char *value); /* NULL: "" */
void json_uint64(struct text *json, const char *name, uint64_t value);
void json_bool(struct text *json, const char *name, bool value);
/* bracket: "}" or "]," and the like. */
void json_close(struct text *json, const char *bracket);

/* Decodes an escape of a JSON string. *at: the byte after the backslash; moved past the escape, or past both of
 * a surrogate pair. A lone surrogate is U+FFFD, as in Go. *ret: the code point, which may be 0. -EBADMSG: it is
 * no escape. */
int json_escape_decode(const char **at, const char *end, unsigned *ret);
/* Writes the code point as UTF-8: at most 4 bytes, and never more than its escape has. Returns how many. */
size_t utf8_encode(unsigned code, char *out);

/* Appends a string as a part of a URL: all but letters, digits, '-', '.', '_' and '~' becomes %XX (RFC 3986). */
int text_append_escaped(struct text *text, const char *string);

/* Appends a string in base64. */
void text_append_base64(struct text *text, const char *input);

/* Whether the byte is white space of JSON. */
static inline bool json_is_space(char c)
{
        return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

bool ends_with(const char *text, const char *end);

/* Length of the valid UTF-8 sequence at `bytes` (1 to 4), or 0 when there is none. */
size_t utf8_sequence(const char *bytes, size_t size);

/* Whether brackets ([ and {) are nested deeper than any sane document nests them: libyaml takes quadratic
 * time over them. Brackets inside strings are counted too, as nobody has that many. */
#define BRACKETS_MAX 64
bool text_nests_too_deep(const char *string);

/* "1 object", "2 objects": the word that goes with the number. */
static inline const char *counted(uint64_t count, const char *one, const char *many)
{
        return count == 1 ? one : many;
}

/* As printf() writes it; the caller owns it. NULL on lack of memory. */
char *format_string(const char *format, ...) _printf_(1, 2);

/* Replaces the text at *place by a copy, and frees the old one. -ENOMEM: nothing has changed. */
int text_replace(char **place, const char *text);

#define _cleanup_text_ _cleanup_(text_done)

/* The distance of two words in letters (Levenshtein), to suggest similar words; SIZE_MAX if a word is too long. */
size_t word_distance(const char *a, const char *b);
