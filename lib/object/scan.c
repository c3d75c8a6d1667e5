/* SPDX-License-Identifier: Apache-2.0 */
/* Values, members, metadata: the part of the scanner that sees whole objects. */
#include "object/scan.h"

#include <errno.h>
#include <string.h>

#include "object/scan-value.h"

int scan_value(const char *input, size_t size, struct span *ret_value)
{
        struct value_cursor cursor = {0};
        size_t start = skip_space(input, size, 0);
        int r = value_cursor_run(&cursor, input + start, size - start);

        if (r < 0)
                return r;
        if (r == 0)
                return -EAGAIN;
        *ret_value = (struct span){input + start, cursor.position};
        return 0;
}

/* ---- members */

static int expect_byte(const char *input, size_t size, size_t *position, char c)
{
        *position = skip_space(input, size, *position);
        if (*position >= size)
                return -EAGAIN;
        if (input[*position] != c)
                return -EBADMSG;
        (*position)++;
        return 0;
}

static int scan_member(const char *input, size_t size, size_t *position, struct span *ret_key,
                       struct span *ret_value)
{
        int r = scan_value(input + *position, size - *position, ret_key);

        if (r < 0)
                return r;
        if (ret_key->start[0] != '"')
                return -EBADMSG;
        *position = (size_t)(ret_key->start - input) + ret_key->size;
        r = expect_byte(input, size, position, ':');
        if (r < 0)
                return r;
        r = scan_value(input + *position, size - *position, ret_value);
        if (r < 0)
                return r;
        *position = (size_t)(ret_value->start - input) + ret_value->size;
        return 0;
}

struct scan_walk scan_begin(struct span whole, char bracket)
{
        bool has_any = whole.start && whole.size > 0 && whole.start[0] == bracket;

        return (struct scan_walk){.whole = has_any ? whole : (struct span){0}, .position = 1};
}

/* 1, or 0 after the last one. */
static int next_value(struct scan_walk *walk)
{
        const char *input = walk->whole.start;
        size_t size = walk->whole.size;
        bool is_object = input[0] == '{';
        int r;

        if (expect_byte(input, size, &walk->position, is_object ? '}' : ']') == 0)
                return 0;
        r = walk->begun ? expect_byte(input, size, &walk->position, ',') : 0;
        walk->begun = true;
        if (r < 0)
                return r;
        if (is_object)
                r = scan_member(input, size, &walk->position, &walk->key, &walk->value);
        else
                r = scan_value(input + walk->position, size - walk->position, &walk->value);
        if (r < 0)
                return r;
        walk->position = (size_t)(walk->value.start - input) + walk->value.size;
        return 1;
}

bool scan_next(struct scan_walk *walk)
{
        int r = walk->whole.start ? next_value(walk) : 0;

        walk->status = r >= 0 ? 0 : r == -EAGAIN ? -EBADMSG : r; /* a span is a whole value */
        return r > 0;
}

/* One object, from its '{' to after its '}'. */
static int walk_members(const char *input, size_t size, size_t *position, scan_member_t callback,
                        void *userdata)
{
        struct scan_walk walk = {.position = 1};
        int r = expect_byte(input, size, position, '{');

        if (r < 0)
                return r;
        walk.whole = (struct span){input + *position - 1, size - *position + 1};
        while (r >= 0 && (r = next_value(&walk)) > 0)
                r = callback(walk.key, walk.value, userdata);
        *position += walk.position - 1;
        return r;
}

int scan_members(struct span object, scan_member_t callback, void *userdata)
{
        size_t position = 0;
        int r = object.start ? walk_members(object.start, object.size, &position, callback, userdata)
                             : -EBADMSG;

        return r == -EAGAIN ? -EBADMSG : r; /* a span is a whole value: there is no more of it */
}

struct finder {
        const struct scan_wanted *wanted;
        size_t count;
};

static int take_wanted(struct span key, struct span value, void *userdata)
{
        const struct finder *finder = userdata;

        for (size_t i = 0; i < finder->count; i++)
                if (scan_string_equals(key, finder->wanted[i].name))
                        *finder->wanted[i].place = value;
        return 0;
}

int scan_find(struct span object, const struct scan_wanted *wanted, size_t count)
{
        struct finder finder = {wanted, count};

        return scan_members(object, take_wanted, &finder);
}

struct span scan_get(struct span object, const char *name)
{
        struct span found = {0};
        struct scan_walk walk;

        SCAN_MEMBERS(walk, object)
                if (scan_string_equals(walk.key, name))
                        found = walk.value;
        return found;
}

/* ---- strings */

static int decode_escape(const char *input, size_t size, size_t *position, struct text *out)
{
        const char *at = input + *position;
        char bytes[4];
        unsigned code;

        /* A NUL would end the text for all who read it. */
        if (json_escape_decode(&at, input + size, &code) < 0 || code == 0)
                return -EBADMSG;
        *position = (size_t)(at - input);
        return text_append(out, bytes, utf8_encode(code, bytes));
}

int scan_string(struct span value, char **ret)
{
        _cleanup_text_ struct text out = TEXT_EMPTY;
        size_t position = 1, end;

        if (!value.start || value.size < 2 || value.start[0] != '"' || value.start[value.size - 1] != '"')
                return -EBADMSG;
        end = value.size - 1;
        if (memchr(value.start, '\0', value.size))
                return -EBADMSG;
        while (position < end) {
                const char *start = value.start + position;
                const char *escape = memchr(start, '\\', end - position);
                size_t plain = escape ? (size_t)(escape - start) : end - position;
                int r;

                text_append(&out, start, plain);
                position += plain;
                if (!escape)
                        break;
                position++;
                if (position >= end)
                        return -EBADMSG;
                r = decode_escape(value.start, end, &position, &out);
                if (r < 0)
                        return r;
        }
        *ret = text_take(&out);
        return *ret ? 0 : -ENOMEM;
}

static bool is_plain_string(struct span value)
{
        return value.start && value.size >= 2 && value.start[0] == '"' &&
               value.start[value.size - 1] == '"' && !memchr(value.start, '\\', value.size) &&
               !memchr(value.start, '\0', value.size);
}

int scan_string_into(struct span value, char *out, size_t max, size_t *ret_size)
{
        _cleanup_free_ char *decoded = NULL;
        size_t size;
        int r = is_plain_string(value) ? 0 : scan_string(value, &decoded);

        if (r < 0)
                return r;
        size = decoded ? strlen(decoded) : value.size - 2;
        if (size > max)
                return -ENAMETOOLONG;
        memcpy(out, decoded ? decoded : value.start + 1, size);
        out[size] = '\0';
        *ret_size = size;
        return 0;
}

bool scan_string_decodes_to(struct span value, const char *string)
{
        _cleanup_free_ char *decoded = NULL;

        return memchr(value.start, '\\', value.size) && scan_string(value, &decoded) >= 0 &&
               strcmp(decoded, string) == 0;
}

/* ---- an object's metadata */

struct place {
        const char *name;
        size_t size, offset;
};

#define PLACE(name, field)                                                                                  \
        {                                                                                                   \
                name, sizeof(name) - 1, offsetof(struct scan_object, field)                                 \
        }

static const struct place top_place[] = {
        PLACE("apiVersion", api_version),
        PLACE("kind", kind),
        PLACE("metadata", metadata),
        PLACE("status", status),
};

static const struct place metadata_place[] = {
        PLACE("name", name),
        PLACE("namespace", namespace_name),
        PLACE("uid", uid),
        PLACE("resourceVersion", resource_version),
        PLACE("generation", generation),
        PLACE("deletionTimestamp", deletion_timestamp),
        PLACE("labels", labels),
        PLACE("annotations", annotations),
        PLACE("finalizers", finalizers),
        PLACE("ownerReferences", owner_references),
        PLACE("managedFields", managed_fields),
};

struct filler {
        const struct place *place;
        size_t count;
        struct scan_object *object;
};

static int fill_place(struct span key, struct span value, void *userdata)
{
        const struct filler *filler = userdata;

        for (size_t i = 0; i < filler->count; i++)
                if (scan_string_is(key, filler->place[i].name, filler->place[i].size)) {
                        void *field = (char *)filler->object + filler->place[i].offset;

                        *(struct span *)field = value;
                        break;
                }
        return 0;
}

int scan_object(const char *input, size_t size, struct scan_object *ret)
{
        struct scan_object object = {0};
        struct filler top = {top_place, ELEMENTS(top_place), &object};
        struct filler metadata = {metadata_place, ELEMENTS(metadata_place), &object};
        size_t start = skip_space(input, size, 0), end = start;
        int r = walk_members(input, size, &end, fill_place, &top);

        if (r < 0)
                return r;
        if (skip_space(input, size, end) != size)
                return -EBADMSG;
        object.whole = (struct span){input + start, end - start};
        if (object.metadata.start)
                r = scan_members(object.metadata, fill_place, &metadata);
        if (r < 0)
                return r;
        *ret = object;
        return 0;
}

static int find_metadata(struct span key, struct span value, void *userdata)
{
        struct filler *filler = userdata;
        int r = fill_place(key, value, filler);

        return r < 0 || !filler->object->metadata.start ? r : -ECANCELED;
}

int scan_identity(const char *input, size_t size, struct scan_object *ret)
{
        struct scan_object object = {0};
        struct filler metadata = {metadata_place, ELEMENTS(metadata_place), &object};
        struct filler top = {top_place, ELEMENTS(top_place), &object};
        size_t end = 0;
        int r = walk_members(input, size, &end, find_metadata, &top);

        if (r >= 0)
                return -EBADMSG; /* it has none */
        if (r == -ECANCELED)
                r = scan_members(object.metadata, fill_place, &metadata);
        if (r < 0)
                return r;
        *ret = object;
        return 0;
}
