/* SPDX-License-Identifier: Apache-2.0 */
/* See json.h. No recursion: how deep a text is, its author decides. */
#include "json/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

struct reader {
        const char *text;
        size_t size, position;
        cJSON **open; /* the containers around the position, outermost first */
        size_t depth, allocated, values, values_max;
        char *key; /* of the member whose value comes next */
};

static char look_ahead(struct reader *reader)
{
        while (reader->position < reader->size && json_is_space(reader->text[reader->position]))
                reader->position++;
        return reader->position < reader->size ? reader->text[reader->position] : '\0';
}

/* ---- numbers */

static size_t digits(const char *text, size_t size, size_t at)
{
        size_t start = at;

        while (at < size && text[at] >= '0' && text[at] <= '9')
                at++;
        return at - start;
}

/* How long the number is that begins here, as RFC 8259 has it. 0 if there is none. */
static size_t number_size(const char *text, size_t size)
{
        size_t at = size > 0 && text[0] == '-', count = digits(text, size, at);

        if (count == 0 || (count > 1 && text[at] == '0'))
                return 0;
        at += count;
        if (at < size && text[at] == '.') {
                count = digits(text, size, at + 1);
                if (count == 0)
                        return 0;
                at += 1 + count;
        }
        if (at < size && (text[at] == 'e' || text[at] == 'E')) {
                at += at + 1 < size && (text[at + 1] == '+' || text[at + 1] == '-') ? 2 : 1;
                count = digits(text, size, at);
                if (count == 0)
                        return 0;
                at += count;
        }
        return at;
}

static int as_int(double value)
{
        return value >= INT32_MAX ? INT32_MAX : value <= INT32_MIN ? INT32_MIN : (int)value;
}

/* A node that holds this text and prints as it. */
static cJSON *new_raw(const char *text, size_t size)
{
        cJSON *item = cJSON_CreateNull();

        if (!item)
                return NULL;
        item->valuestring = strndup(text, size);
        if (!item->valuestring) {
                cJSON_Delete(item);
                return NULL;
        }
        item->type = cJSON_Raw;
        return item;
}

static int read_json_number(struct reader *reader, cJSON **ret)
{
        const char *start = reader->text + reader->position;
        size_t size = number_size(start, reader->size - reader->position);

        if (size == 0)
                return -EBADMSG;
        *ret = new_raw(start, size);
        if (!*ret)
                return -ENOMEM;
        (*ret)->valuedouble = strtod((*ret)->valuestring, NULL);
        (*ret)->valueint = as_int((*ret)->valuedouble);
        reader->position += size;
        return 0;
}

bool json_is_number(const cJSON *item)
{
        if (!cJSON_IsRaw(item))
                return cJSON_IsNumber(item);
        return item->valuestring[0] == '-' || (item->valuestring[0] >= '0' && item->valuestring[0] <= '9');
}

double json_number(const cJSON *item, double otherwise)
{
        return json_is_number(item) ? item->valuedouble : otherwise;
}

cJSON *json_new_integer(int64_t value)
{
        char text[24];
        cJSON *item;

        item = new_raw(text, (size_t)snprintf(text, sizeof(text), "%" PRId64, value));
        if (item) {
                item->valuedouble = (double)value;
                item->valueint = as_int(item->valuedouble);
        }
        return item;
}

/* ---- texts */

const char *json_text(const cJSON *object, const char *name)
{
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

        return text ? text : "";
}

/* `out` has enough room: a text is never longer than its escaped form. */
static int decode_string(const char *at, const char *end, char *out, bool *ret_zero)
{
        while (at < end) {
                unsigned code;

                if (*at != '\\') {
                        *out++ = *at++;
                        continue;
                }
                at++;
                if (json_escape_decode(&at, end, &code) < 0)
                        return -EBADMSG;
                *ret_zero = *ret_zero || code == 0;
                out += utf8_encode(code, out);
        }
        *out = '\0';
        return 0;
}

/* The length from the opening quote to the closing one, both included. 0 if there is no string; then *ret_where
 * is the wrong byte. */
static size_t string_size(const char *text, size_t size, size_t *ret_where)
{
        for (size_t i = 1; i < size; i++) {
                unsigned char byte = (unsigned char)text[i];
                size_t length = byte < 0x80 ? 1 : utf8_sequence(text + i, size - i);

                if (byte == '"')
                        return i + 1;
                if (byte < ' ' || length == 0) {
                        *ret_where = i;
                        return 0;
                }
                if (byte == '\\' && i + 1 < size && (unsigned char)text[i + 1] < 0x80)
                        length = 2;
                i += length - 1;
        }
        *ret_where = size;
        return 0;
}

/* *ret_zero: the text has a NUL, so as a C string it is cut. */
static int read_json_text(struct reader *reader, char **ret, bool *ret_zero)
{
        const char *start = reader->text + reader->position;
        size_t where = 0, size = string_size(start, reader->size - reader->position, &where);
        _cleanup_free_ char *text = NULL;

        if (size == 0) {
                reader->position += where;
                return -EBADMSG;
        }
        text = malloc(size);
        if (!text)
                return -ENOMEM;
        if (decode_string(start + 1, start + size - 1, text, ret_zero) < 0)
                return -EBADMSG;
        reader->position += size;
        *ret = TAKE_PTR(text);
        return 0;
}

static int read_string(struct reader *reader, cJSON **ret)
{
        size_t start = reader->position;
        _cleanup_free_ char *text = NULL;
        bool zero = false;
        int r = read_json_text(reader, &text, &zero);

        if (r < 0)
                return r;
        *ret = zero ? new_raw(reader->text + start, reader->position - start) : cJSON_CreateNull();
        if (!*ret)
                return -ENOMEM;
        if (!zero) {
                (*ret)->type = cJSON_String;
                (*ret)->valuestring = TAKE_PTR(text);
        }
        return 0;
}

/* "key": */
static int read_member_name(struct reader *reader)
{
        bool zero = false;
        int r = look_ahead(reader) == '"' ? read_json_text(reader, &reader->key, &zero) : -EBADMSG;

        if (r >= 0 && (zero || look_ahead(reader) != ':'))
                r = -EBADMSG;
        reader->position += r >= 0;
        return r;
}

/* ---- values */

static int read_word(struct reader *reader, cJSON **ret)
{
        static const struct {
                const char *word;
                int type;
        } known[] = {{"true", cJSON_True}, {"false", cJSON_False}, {"null", cJSON_NULL}};

        for (size_t i = 0; i < ELEMENTS(known); i++) {
                size_t size = strlen(known[i].word);

                if (reader->size - reader->position < size ||
                    memcmp(reader->text + reader->position, known[i].word, size) != 0)
                        continue;
                *ret = cJSON_CreateNull();
                if (!*ret)
                        return -ENOMEM;
                (*ret)->type = known[i].type;
                reader->position += size;
                return 0;
        }
        return -EBADMSG;
}

static int open_container(struct reader *reader, char c, cJSON **ret)
{
        if (reader->depth == JSON_DEPTH_MAX)
                return -EBADMSG;
        if (reader->depth == reader->allocated) {
                size_t allocated = reader->allocated > 0 ? 2 * reader->allocated : 32;
                cJSON **grown = reallocarray((void *)reader->open, allocated, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                reader->open = grown;
                reader->allocated = allocated;
        }
        *ret = c == '{' ? cJSON_CreateObject() : cJSON_CreateArray();
        if (!*ret)
                return -ENOMEM;
        reader->open[reader->depth++] = *ret;
        reader->position++;
        return 0;
}

static int read_json_value(struct reader *reader, char c, cJSON **ret)
{
        if (c == '{' || c == '[')
                return open_container(reader, c, ret);
        if (c == '"')
                return read_string(reader, ret);
        return c == '-' || (c >= '0' && c <= '9') ? read_json_number(reader, ret) : read_word(reader, ret);
}

/* After a value: closes what ends here. 1: the outermost has ended; 0: a key or a value comes. */
static int read_end(struct reader *reader, bool is_first)
{
        while (reader->depth > 0) {
                char close = cJSON_IsObject(reader->open[reader->depth - 1]) ? '}' : ']',
                     c = look_ahead(reader);

                if (c == close) {
                        reader->position++;
                        reader->depth--;
                        is_first = false;
                        continue;
                }
                if (is_first)
                        return 0;
                if (c != ',')
                        return -EBADMSG;
                reader->position++;
                return 0;
        }
        return 1;
}

static int read_next(struct reader *reader, cJSON **root)
{
        cJSON *parent = reader->depth > 0 ? reader->open[reader->depth - 1] : NULL, *item = NULL;
        int r = reader->values++ == reader->values_max ? -E2BIG
                : cJSON_IsObject(parent)               ? read_member_name(reader)
                                                       : 0;

        if (r >= 0)
                r = read_json_value(reader, look_ahead(reader), &item);
        if (r < 0)
                return r;
        item->string = TAKE_PTR(reader->key);
        if (parent)
                cJSON_AddItemToArray(parent, item); /* of an object as well: its name is there already */
        else
                *root = item;
        return read_end(reader, cJSON_IsObject(item) || cJSON_IsArray(item));
}

/* ---- members by name */

static int compare_member_names(const void *a, const void *b)
{
        return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

int json_names_sort(const cJSON *object, struct json_names *ret)
{
        size_t count = cJSON_IsObject(object) ? (size_t)cJSON_GetArraySize(object) : 0, i = 0;
        const cJSON *member;

        *ret = (struct json_names){.member = calloc(count + 1, sizeof(*ret->member)), .count = count};
        if (!ret->member) {
                ret->count = 0;
                return -ENOMEM;
        }
        cJSON_ArrayForEach(member, object) if (i < count) ret->member[i++] = member;
        qsort((void *)ret->member, count, sizeof(*ret->member), compare_member_names);
        return 0;
}

const cJSON *json_names_find(const struct json_names *names, const char *name)
{
        cJSON wanted = {.string = (char *)(uintptr_t)name};
        const cJSON *key = &wanted;
        const cJSON **found = names->count > 0 ? bsearch(&key, (const void *)names->member, names->count,
                                                         sizeof(*names->member), compare_member_names)
                                               : NULL;

        return found ? *found : NULL;
}

void json_names_done(struct json_names *names)
{
        free((void *)names->member);
        *names = (struct json_names){0};
}

/* ---- equality */

cJSON *json_member_from(const cJSON *object, const char *name, const cJSON **at)
{
        cJSON *found = *at && strcmp((*at)->string, name) == 0
                               ? (cJSON *)(uintptr_t)*at
                               : cJSON_GetObjectItemCaseSensitive(object, name);

        if (found)
                *at = found->next;
        return found;
}

/* The members may be in any order, and there may be many. */
static bool equal_members(const cJSON *a, const cJSON *b)
{
        struct json_names names;
        bool equal = json_names_sort(b, &names) >= 0;
        const cJSON *member;

        cJSON_ArrayForEach(member, a) equal =
                equal && json_equal(member, json_names_find(&names, member->string));
        json_names_done(&names);
        return equal;
}

static bool equal_arrays(const cJSON *a, const cJSON *b)
{
        const cJSON *first = a->child, *second = b->child;

        for (; first && second; first = first->next, second = second->next)
                if (!json_equal(first, second))
                        return false;
        return !first && !second;
}

static bool are_in_one_order(const cJSON *a, const cJSON *b)
{
        const cJSON *member = a->child, *other = b->child;

        for (; member && other; member = member->next, other = other->next)
                if (strcmp(member->string, other->string) != 0)
                        return false;
        return true;
}

/* Values are compared in the one way or the other: both, at each level, would double the time with each. */
static bool equal_objects(const cJSON *a, const cJSON *b)
{
        if (cJSON_GetArraySize(a) != cJSON_GetArraySize(b))
                return false;
        return are_in_one_order(a, b) ? equal_arrays(a, b) : equal_members(a, b);
}

bool json_equal(const cJSON *a, const cJSON *b)
{
        if (!a || !b)
                return false;
        if (json_is_number(a) && json_is_number(b) && !(cJSON_IsRaw(a) && cJSON_IsRaw(b)))
                return !(a->valuedouble < b->valuedouble) && !(a->valuedouble > b->valuedouble);
        if ((a->type & 0xff) != (b->type & 0xff))
                return false;
        if (cJSON_IsObject(a))
                return equal_objects(a, b);
        if (cJSON_IsArray(a))
                return equal_arrays(a, b);
        return !(cJSON_IsRaw(a) || cJSON_IsString(a)) || strcmp(a->valuestring, b->valuestring) == 0;
}

const cJSON *json_find_overflow(const cJSON *item)
{
        const cJSON *found = NULL;

        if (json_is_number(item))
                return isinf(item->valuedouble) ? item : NULL;
        for (const cJSON *child = item->child; child && !found; child = child->next)
                found = json_find_overflow(child);
        return found;
}

/* ---- duplicates */

static int find_among_members(const cJSON *object, const cJSON **ret)
{
        struct json_names names;
        int r = json_names_sort(object, &names);

        for (size_t i = 1; r >= 0 && i < names.count && !*ret; i++)
                if (strcmp(names.member[i - 1]->string, names.member[i]->string) == 0)
                        *ret = names.member[i];
        json_names_done(&names);
        return r;
}

static int find_duplicate(const cJSON *item, const cJSON **ret)
{
        int r = cJSON_IsObject(item) && item->child && item->child->next ? find_among_members(item, ret) : 0;

        for (const cJSON *child = item->child; child && r >= 0 && !*ret; child = child->next)
                r = find_duplicate(child, ret);
        return r;
}

int json_find_duplicate(const cJSON *root, const cJSON **ret)
{
        *ret = NULL;
        return find_duplicate(root, ret);
}

static bool append_path(const cJSON *at, const cJSON *item, struct text *out)
{
        size_t before = out->size, index = 0;

        for (const cJSON *child = at->child; child; child = child->next) {
                if (child->string)
                        text_printf(out, "%s%s", before > 0 ? "." : "", child->string);
                else
                        text_printf(out, "[%zu]", index++);
                if (child == item || append_path(child, item, out))
                        return true;
                out->size = before;
        }
        return false;
}

void json_append_path(const cJSON *root, const cJSON *item, struct text *out)
{
        (void)append_path(root, item, out);
}

static int read_tree(const char *text, size_t size, size_t values_max, cJSON **ret, size_t *ret_where)
{
        _cleanup_json_ cJSON *root = NULL;
        struct reader reader = {.text = text, .size = size, .values_max = values_max};
        int r;

        while ((r = read_next(&reader, &root)) == 0)
                ;
        if (ret_where)
                *ret_where = reader.position;
        if (r > 0)
                r = look_ahead(&reader) == '\0' && reader.position == size ? 0 : -EBADMSG;
        free(reader.key);
        free((void *)reader.open);
        if (r >= 0)
                *ret = TAKE_PTR(root);
        return r;
}

int json_read(const char *text, size_t size, cJSON **ret, size_t *ret_where)
{
        int r = read_tree(text, size, JSON_VALUES_MAX, ret, ret_where);

        return r == -E2BIG ? -EBADMSG : r;
}

int json_read_bounded(const char *text, size_t size, cJSON **ret, size_t *ret_where)
{
        return read_tree(text, size, JSON_BOUNDED_MAX, ret, ret_where);
}

cJSON *json_parse(const char *text, size_t size)
{
        cJSON *tree = NULL;

        return text && json_read(text, size, &tree, NULL) >= 0 ? tree : NULL;
}

cJSON *json_parse_bounded(const char *text, size_t size)
{
        cJSON *tree = NULL;

        return text && json_read_bounded(text, size, &tree, NULL) >= 0 ? tree : NULL;
}

cJSON *json_parse_served(const char *text, size_t size)
{
        cJSON *tree = NULL;

        return text && read_tree(text, size, JSON_SERVED_MAX, &tree, NULL) >= 0 ? tree : NULL;
}
