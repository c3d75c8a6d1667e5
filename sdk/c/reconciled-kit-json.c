/* SPDX-License-Identifier: Apache-2.0 */
/* Values of JSON. Numbers keep their text, so that none loses digits on its way through. */
#define _POSIX_C_SOURCE 200809L
#include "reconciled-kit-json.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX  1000
#define BLOCK_SIZE ((size_t)16 * 1024)

enum kind { KIND_NULL, KIND_FALSE, KIND_TRUE, KIND_NUMBER, KIND_STRING, KIND_LIST, KIND_OBJECT };

/* An entry of a list, or a member of an object. */
struct entry {
        const char *key; /* NULL in a list */
        const struct rk_value *value;
};

struct rk_value {
        enum kind kind;
        const char *text; /* of a string, without its quotes, or of a number; with a NUL after it */
        size_t size;      /* of the text, or number of entries */
        struct entry *entry;
        size_t room; /* for so many entries */
};

/* ---- memory */

struct rk_block {
        struct rk_block *next;
        size_t used, size;
        max_align_t content[];
};

void *rk_allocate(struct rk_block **memory, size_t size)
{
        struct rk_block *block = *memory;
        char *found;

        size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
        if (!block || block->size - block->used < size) {
                size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;

                block = malloc(sizeof(*block) + room);
                if (!block) {
                        fprintf(stderr, "error: no memory for %zu bytes\n", room);
                        abort();
                }
                *block = (struct rk_block){.next = *memory, .size = room};
                *memory = block;
        }
        found = (char *)block->content + block->used;
        block->used += size;
        return memset(found, 0, size);
}

void rk_forget(struct rk_block **memory)
{
        while (*memory) {
                struct rk_block *block = *memory;

                *memory = block->next;
                free(block);
        }
}

static struct rk_value *make(struct rk_block **memory, enum kind kind)
{
        struct rk_value *value = rk_allocate(memory, sizeof(*value));

        value->kind = kind;
        return value;
}

static struct rk_value *make_text(struct rk_block **memory, enum kind kind, const char *text, size_t size)
{
        struct rk_value *value = make(memory, kind);
        char *copy = rk_allocate(memory, size + 1);

        value->text = memcpy(copy, text, size);
        value->size = size;
        return value;
}

/* The room doubles each time: the memory of the rooms before is less than that of the last one. */
static void make_room(struct rk_block **memory, struct rk_value *value)
{
        size_t room = value->room > 0 ? 2 * value->room : 4;
        struct entry *entry = rk_allocate(memory, room * sizeof(*entry));

        if (value->size > 0)
                memcpy(entry, value->entry, value->size * sizeof(*entry));
        value->entry = entry;
        value->room = room;
}

static void add(struct rk_block **memory, struct rk_value *to, const char *key, const struct rk_value *value)
{
        if (to->size == to->room)
                make_room(memory, to);
        to->entry[to->size++] = (struct entry){.key = key, .value = value};
}

/* ---- reading text */

struct parser {
        struct rk_block **memory;
        const char *at, *end, *why;
        va_list *arguments; /* NULL: it is no template */
        unsigned depth;
};

static struct rk_value *parse_value(struct parser *parser);

static void *wrong(struct parser *parser, const char *why)
{
        if (!parser->why)
                parser->why = why;
        return NULL;
}

static void skip_space(struct parser *parser)
{
        while (parser->at < parser->end && memchr(" \t\r\n", *parser->at, 4))
                parser->at++;
}

/* '\0': the end, or a NUL, which is no JSON either. */
static char look(const struct parser *parser)
{
        return parser->at < parser->end ? *parser->at : '\0';
}

static bool take(struct parser *parser, const char *word)
{
        size_t size = strlen(word);

        if ((size_t)(parser->end - parser->at) < size || memcmp(parser->at, word, size) != 0)
                return false;
        parser->at += size;
        return true;
}

static int parse_hex(struct parser *parser)
{
        int code = 0;

        for (int i = 0; i < 4; i++, parser->at++) {
                static const char digits[] = "0123456789abcdef0123456789ABCDEF";
                const char *digit = look(parser) ? strchr(digits, look(parser)) : NULL;

                if (!digit)
                        return -1;
                code = code * 16 + (int)((digit - digits) % 16);
        }
        return code;
}

static char *put_utf8(char *to, unsigned code)
{
        if (code < 0x80) {
                *to++ = (char)code;
        } else if (code < 0x800) {
                *to++ = (char)(0xc0 | code >> 6);
                *to++ = (char)(0x80 | (code & 0x3f));
        } else if (code < 0x10000) {
                *to++ = (char)(0xe0 | code >> 12);
                *to++ = (char)(0x80 | (code >> 6 & 0x3f));
                *to++ = (char)(0x80 | (code & 0x3f));
        } else {
                *to++ = (char)(0xf0 | code >> 18);
                *to++ = (char)(0x80 | (code >> 12 & 0x3f));
                *to++ = (char)(0x80 | (code >> 6 & 0x3f));
                *to++ = (char)(0x80 | (code & 0x3f));
        }
        return to;
}

/* After \u. Half of a pair becomes U+FFFD. NULL: it is none. */
static char *parse_unicode(struct parser *parser, char *to)
{
        int high = parse_hex(parser), low;

        if (high < 0)
                return wrong(parser, "\\u needs four hexadecimal digits");
        if (high >= 0xd800 && high < 0xdc00 && parser->end - parser->at >= 6 && parser->at[0] == '\\' &&
            parser->at[1] == 'u') {
                const char *before = parser->at;

                parser->at += 2;
                low = parse_hex(parser);
                if (low >= 0xdc00 && low < 0xe000)
                        return put_utf8(to, 0x10000 + ((unsigned)high - 0xd800) * 0x400 +
                                                    ((unsigned)low - 0xdc00));
                parser->at = before;
        }
        return put_utf8(to, high >= 0xd800 && high < 0xe000 ? 0xfffd : (unsigned)high);
}

/* Where the string ends that begins here, or NULL. */
static const char *find_quote(const struct parser *parser, char quote)
{
        for (const char *at = parser->at; at < parser->end; at++) {
                if (*at == quote)
                        return at;
                if (*at == '\\')
                        at++;
        }
        return NULL;
}

static struct rk_value *parse_string(struct parser *parser)
{
        static const char names[] = "\"\\/'bfnrt", meant[] = "\"\\/'\b\f\n\r\t";
        char quote = *parser->at++;
        const char *end = find_quote(parser, quote);
        struct rk_value *value = make(parser->memory, KIND_STRING);
        char *text, *to;

        if (!end)
                return wrong(parser, "the string does not end");
        /* No escape is shorter than what it stands for. */
        value->text = text = to = rk_allocate(parser->memory, (size_t)(end - parser->at) + 1);
        while (parser->at < end) {
                char c = *parser->at;
                const char *name;

                if ((unsigned char)c < 0x20)
                        return wrong(parser, "a control character in a string");
                parser->at++;
                if (c != '\\') {
                        *to++ = c;
                        continue;
                }
                c = *parser->at++;
                name = c ? strchr(names, c) : NULL;
                if (name && (c != '\'' || parser->arguments)) {
                        *to++ = meant[name - names];
                } else if (c == 'u') {
                        to = parse_unicode(parser, to);
                        if (!to)
                                return NULL;
                } else {
                        return wrong(parser, "there is no such escape");
                }
        }
        value->size = (size_t)(to - text);
        parser->at = end + 1;
        return value;
}

static bool skip_digits(struct parser *parser)
{
        const char *before = parser->at;

        while (look(parser) >= '0' && look(parser) <= '9')
                parser->at++;
        return parser->at > before;
}

static struct rk_value *parse_number(struct parser *parser)
{
        const char *start = parser->at;

        take(parser, "-");
        if (!take(parser, "0") && !skip_digits(parser))
                return wrong(parser, "no value");
        if (take(parser, ".") && !skip_digits(parser))
                return wrong(parser, "digits are missing");
        if (take(parser, "e") || take(parser, "E")) {
                if (!take(parser, "-"))
                        take(parser, "+");
                if (!skip_digits(parser))
                        return wrong(parser, "digits are missing");
        }
        return make_text(parser->memory, KIND_NUMBER, start, (size_t)(parser->at - start));
}

/* After %. */
static struct rk_value *parse_argument(struct parser *parser)
{
        char text[32];

        if (take(parser, "s")) {
                const char *given = va_arg(*parser->arguments, const char *);

                return given ? make_text(parser->memory, KIND_STRING, given, strlen(given))
                             : make(parser->memory, KIND_NULL);
        }
        if (take(parser, "v")) {
                struct rk_value *given = va_arg(*parser->arguments, struct rk_value *);

                return given ? given : make(parser->memory, KIND_NULL);
        }
        if (take(parser, "b"))
                return make(parser->memory, va_arg(*parser->arguments, int) ? KIND_TRUE : KIND_FALSE);
        if (take(parser, "f")) {
                double given = va_arg(*parser->arguments, double);

                if (!isfinite(given))
                        return wrong(parser, "a number of JSON is finite");
                snprintf(text, sizeof(text), "%.17g", given);
        } else if (take(parser, "lld")) {
                snprintf(text, sizeof(text), "%lld", va_arg(*parser->arguments, long long));
        } else if (take(parser, "d")) {
                snprintf(text, sizeof(text), "%d", va_arg(*parser->arguments, int));
        } else {
                return wrong(parser, "known are %s, %d, %lld, %f, %b and %v");
        }
        return make_text(parser->memory, KIND_NUMBER, text, strlen(text));
}

/* A C string would be cut at a NUL, and pass for the key before it, which a schema may have checked. */
static bool has_nul(const struct rk_value *text)
{
        return memchr(text->text, '\0', text->size);
}

static struct rk_value *parse_key(struct parser *parser)
{
        struct rk_value *key;

        if (look(parser) == '"' || (parser->arguments && look(parser) == '\'')) {
                key = parse_string(parser);
                return key && has_nul(key) ? wrong(parser, "a NUL in a key") : key;
        }
        if (parser->arguments && take(parser, "%s")) {
                parser->at--;
                key = parse_argument(parser);
                return key->kind == KIND_STRING ? key : wrong(parser, "a key cannot be NULL");
        }
        return wrong(parser, "a key is missing");
}

/* A list or an object. */
static struct rk_value *parse_entries(struct parser *parser, enum kind kind, const char *end)
{
        struct rk_value *value = make(parser->memory, kind);

        parser->at++;
        skip_space(parser);
        if (take(parser, end))
                return value;
        do {
                const struct rk_value *key = NULL, *entry;

                skip_space(parser);
                if (kind == KIND_OBJECT) {
                        key = parse_key(parser);
                        if (!key)
                                return NULL;
                        skip_space(parser);
                        if (!take(parser, ":"))
                                return wrong(parser, "a colon is missing");
                }
                entry = parse_value(parser);
                if (!entry)
                        return NULL;
                add(parser->memory, value, key ? key->text : NULL, entry);
                skip_space(parser);
        } while (take(parser, ","));
        return take(parser, end) ? value : wrong(parser, "a comma or the end is missing");
}

static struct rk_value *parse_value(struct parser *parser)
{
        struct rk_value *value = NULL;

        skip_space(parser);
        if (++parser->depth > DEPTH_MAX)
                return wrong(parser, "it is nested too deeply");
        if (look(parser) == '{')
                value = parse_entries(parser, KIND_OBJECT, "}");
        else if (look(parser) == '[')
                value = parse_entries(parser, KIND_LIST, "]");
        else if (look(parser) == '"' || (parser->arguments && look(parser) == '\''))
                value = parse_string(parser);
        else if (take(parser, "null"))
                value = make(parser->memory, KIND_NULL);
        else if (take(parser, "true"))
                value = make(parser->memory, KIND_TRUE);
        else if (take(parser, "false"))
                value = make(parser->memory, KIND_FALSE);
        else if (parser->arguments && take(parser, "%"))
                value = parse_argument(parser);
        else
                value = parse_number(parser);
        parser->depth--;
        return value;
}

struct rk_value *rk_parse(struct rk_block **memory, const char *text, size_t size, va_list *arguments,
                          const char **why, size_t *place)
{
        struct parser parser = {.memory = memory, .at = text, .end = text + size, .arguments = arguments};
        struct rk_value *value = parse_value(&parser);

        skip_space(&parser);
        if (value && parser.at < parser.end)
                value = wrong(&parser, "there is more behind the value");
        *why = parser.why;
        *place = (size_t)(parser.at - text);
        return value;
}

/* ---- writing text */

struct printer {
        char *to;    /* NULL: it is only measured */
        size_t size; /* so far */
};

static void put(struct printer *printer, const char *text, size_t size)
{
        if (printer->to)
                memcpy(printer->to + printer->size, text, size);
        printer->size += size;
}

static void put_word(struct printer *printer, const char *word)
{
        put(printer, word, strlen(word));
}

static void put_string(struct printer *printer, const char *text, size_t size)
{
        put_word(printer, "\"");
        for (const char *at = text; at < text + size; at++) {
                char escape[8];

                if ((unsigned char)*at < 0x20)
                        put(printer, escape,
                            (size_t)snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)*at));
                else if (*at == '"' || *at == '\\')
                        put(printer, (char[]){'\\', *at}, 2);
                else
                        put(printer, at, 1);
        }
        put_word(printer, "\"");
}

static void print_value(struct printer *printer, const struct rk_value *value)
{
        static const char *const word[] = {
                [KIND_NULL] = "null", [KIND_FALSE] = "false", [KIND_TRUE] = "true"};

        switch (value->kind) {
        case KIND_NULL:
        case KIND_FALSE:
        case KIND_TRUE:
                put_word(printer, word[value->kind]);
                break;
        case KIND_NUMBER:
                put(printer, value->text, value->size);
                break;
        case KIND_STRING:
                put_string(printer, value->text, value->size);
                break;
        case KIND_LIST:
        case KIND_OBJECT:
                put_word(printer, value->kind == KIND_LIST ? "[" : "{");
                for (size_t i = 0; i < value->size; i++) {
                        const struct entry *entry = &value->entry[i];

                        put_word(printer, i > 0 ? "," : "");
                        if (entry->key) {
                                put_string(printer, entry->key, strlen(entry->key));
                                put_word(printer, ":");
                        }
                        print_value(printer, entry->value);
                }
                put_word(printer, value->kind == KIND_LIST ? "]" : "}");
                break;
        }
}

char *rk_print(struct rk_block **memory, const struct rk_value *value, size_t *size)
{
        struct printer printer = {0};
        char *text;

        print_value(&printer, value);
        *size = printer.size;
        text = rk_allocate(memory, *size + 1);
        printer = (struct printer){.to = text};
        print_value(&printer, value);
        assert(printer.size == *size);
        return text;
}

/* ---- values */

static bool is(const struct rk_value *value, enum kind kind)
{
        return value && value->kind == kind;
}

bool rk_is_object(const struct rk_value *value)
{
        return is(value, KIND_OBJECT);
}

static struct entry *find(const struct rk_value *object, const char *key)
{
        for (size_t i = 0; is(object, KIND_OBJECT) && i < object->size; i++)
                if (strcmp(object->entry[i].key, key) == 0)
                        return &object->entry[i];
        return NULL;
}

const struct rk_value *rk_get(const struct rk_value *object, const char *key)
{
        const struct entry *entry = find(object, key);

        return entry ? entry->value : NULL;
}

const char *rk_text(const struct rk_value *value, const char *otherwise)
{
        return is(value, KIND_STRING) && !has_nul(value) ? value->text : otherwise;
}

long long rk_integer(const struct rk_value *value, long long otherwise)
{
        char *end;
        long long found;

        if (!is(value, KIND_NUMBER))
                return otherwise;
        errno = 0;
        found = strtoll(value->text, &end, 10);
        return errno == 0 && *end == '\0' ? found : otherwise;
}

double rk_number(const struct rk_value *value, double otherwise)
{
        return is(value, KIND_NUMBER) ? strtod(value->text, NULL) : otherwise;
}

bool rk_boolean(const struct rk_value *value, bool otherwise)
{
        return is(value, KIND_TRUE) || (otherwise && !is(value, KIND_FALSE));
}

bool rk_is_null(const struct rk_value *value)
{
        return !value || value->kind == KIND_NULL;
}

size_t rk_count(const struct rk_value *list)
{
        return is(list, KIND_LIST) || is(list, KIND_OBJECT) ? list->size : 0;
}

const struct rk_value *rk_at(const struct rk_value *list, size_t index)
{
        return index < rk_count(list) ? list->entry[index].value : NULL;
}

static bool same_entries(const struct rk_value *one, const struct rk_value *other)
{
        for (size_t i = 0; i < one->size; i++) {
                const struct entry *entry = &one->entry[i];
                const struct rk_value *twin = entry->key ? rk_get(other, entry->key) : other->entry[i].value;

                if (!twin || !rk_same(entry->value, twin))
                        return false;
        }
        return true;
}

bool rk_same(const struct rk_value *one, const struct rk_value *other)
{
        if (one->kind != other->kind || one->size != other->size)
                return false;
        return one->text ? memcmp(one->text, other->text, one->size) == 0 : same_entries(one, other);
}

struct rk_value *rk_copy(struct rk_request *request, const struct rk_value *value)
{
        struct rk_value *copy = make(&request->memory, value->kind);

        assert(value->kind == KIND_LIST || value->kind == KIND_OBJECT);
        for (size_t i = 0; i < value->size; i++)
                add(&request->memory, copy, value->entry[i].key, value->entry[i].value);
        return copy;
}

void rk_append(struct rk_request *request, struct rk_value *list, const struct rk_value *entry)
{
        assert(is(list, KIND_LIST));
        add(&request->memory, list, NULL, entry);
}

void rk_set(struct rk_request *request, struct rk_value *object, const char *key,
            const struct rk_value *value)
{
        struct entry *entry = find(object, key);

        assert(is(object, KIND_OBJECT));
        if (entry)
                entry->value = value;
        else
                add(&request->memory, object,
                    make_text(&request->memory, KIND_STRING, key, strlen(key))->text, value);
}

struct rk_value *rk_build(struct rk_request *request, const char *template, ...)
{
        struct rk_value *value;
        const char *why;
        va_list arguments;
        size_t place;

        va_start(arguments, template);
        value = rk_parse(&request->memory, template, strlen(template), &arguments, &why, &place);
        va_end(arguments);
        if (!value) {
                fprintf(stderr, "error: rk_build(): %s, at character %zu of %s\n", why, place, template);
                abort();
        }
        return value;
}
