/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A LIST as it streams in. What lies whole in a piece is read where it is; the buffer holds only what a
 * piece ended in the middle of: at most one item, or one member of the list itself, and a part of the next
 * piece.
 */
#include "object/scan-list.h"

#include <errno.h>
#include <string.h>

#include "object/identity.h"
#include "object/scan-value.h"

#define PART 4096 /* of a piece, to complete what is in the buffer */

enum list_state {
        LIST_START,      /* '{' is awaited */
        LIST_MEMBER,     /* a key, or '}' */
        LIST_COLON,      /* ':' */
        LIST_VALUE,      /* the value of a member that is not items */
        LIST_ITEM,       /* an element of items, or ']' */
        LIST_ITEM_END,   /* ',' or ']' */
        LIST_MEMBER_END, /* ',' or '}' */
        LIST_END,
        LIST_STATE_COUNT
};

struct scan_list {
        enum list_state state;
        struct text buffer;
        struct span input; /* what is read: the buffer, or a piece */
        size_t position;   /* of what was not read yet, in `input` */
        struct value_cursor cursor;
        size_t item_max;
        scan_item_t on_item;
        void *userdata;
        bool key_is_items, key_is_metadata, first;
        bool draining; /* inside an item that is too large */
        struct scan_list_metadata metadata;
};

int scan_list_new(size_t item_max, scan_item_t on_item, void *userdata, struct scan_list **ret)
{
        struct scan_list *list = calloc(1, sizeof(*list));

        if (!list)
                return -ENOMEM;
        list->item_max = item_max;
        list->on_item = on_item;
        list->userdata = userdata;
        list->metadata.remaining_items = -1;
        list->metadata.resource_version = strdup("");
        list->metadata.continue_token = strdup("");
        if (!list->metadata.resource_version || !list->metadata.continue_token) {
                scan_list_free(list);
                return -ENOMEM;
        }
        *ret = list;
        return 0;
}

void scan_list_free(struct scan_list *list)
{
        if (!list)
                return;
        text_done(&list->buffer);
        free(list->metadata.resource_version);
        free(list->metadata.continue_token);
        free(list);
}

/* ---- the list's own metadata */

static int replace_string(char **place, struct span value)
{
        char *string;
        int r = scan_string(value, &string);

        if (r < 0)
                return r;
        free(*place);
        *place = string;
        return 0;
}

static int take_metadata(struct span key, struct span value, void *userdata)
{
        struct scan_list_metadata *metadata = userdata;

        /* It is kept, and sent on: what could be no object's is none. */
        if (scan_string_equals(key, "resourceVersion")) {
                char *version;
                int r = identity_text(value, IDENTITY_VERSION_MAX, &version);

                if (r < 0)
                        return r;
                free(metadata->resource_version);
                metadata->resource_version = version;
                return 0;
        }
        if (scan_string_equals(key, "continue"))
                return replace_string(&metadata->continue_token, value);
        if (scan_string_equals(key, "remainingItemCount"))
                metadata->remaining_items = strtoll(value.start, NULL, 10);
        return 0;
}

/* ---- states. Each looks at the next byte; 1: understood, 0: needs more bytes. */

static int take_list_value(struct scan_list *list, struct span *ret)
{
        const char *start = list->input.start + list->position;
        int r = value_cursor_run(&list->cursor, start, list->input.size - list->position);

        if (r <= 0)
                return r;
        *ret = (struct span){start, list->cursor.position};
        list->position += list->cursor.position;
        list->cursor = (struct value_cursor){0};
        return 1;
}

static int at_start(struct scan_list *list, char c)
{
        if (c != '{')
                return -EBADMSG;
        list->position++;
        list->first = true;
        list->state = LIST_MEMBER;
        return 1;
}

static int at_member(struct scan_list *list, char c)
{
        struct span key;
        int r;

        if (c == '}' && list->first) {
                list->position++;
                list->state = LIST_END;
                return 1;
        }
        if (c != '"')
                return -EBADMSG;
        r = take_list_value(list, &key);
        if (r <= 0)
                return r;
        list->key_is_items = scan_string_equals(key, "items");
        list->key_is_metadata = scan_string_equals(key, "metadata");
        list->state = LIST_COLON;
        return 1;
}

static int at_colon(struct scan_list *list, char c)
{
        if (c != ':')
                return -EBADMSG;
        list->position++;
        list->state = LIST_VALUE;
        return 1;
}

static int at_value(struct scan_list *list, char c)
{
        struct span value;
        int r;

        if (list->key_is_items && c == '[') {
                list->position++;
                list->first = true;
                list->state = LIST_ITEM;
                return 1;
        }
        r = take_list_value(list, &value);
        if (r <= 0)
                return r;
        if (list->key_is_metadata && value.start[0] == '{')
                r = scan_members(value, take_metadata, &list->metadata);
        list->state = LIST_MEMBER_END;
        return r < 0 ? r : 1;
}

/* Drops the part of an oversized item that was scanned, and keeps the position at which its end is looked
 * for. */
static void drop_consumed(struct scan_list *list)
{
        list->draining = true;
        list->position += list->cursor.position;
        list->cursor.position = 0;
}

static int at_item(struct scan_list *list, char c)
{
        struct span item;
        int r;

        if (c == ']' && list->first && !list->draining) {
                list->position++;
                list->state = LIST_MEMBER_END;
                return 1;
        }
        r = take_list_value(list, &item);
        if (r == 0 && (list->draining || list->cursor.position > list->item_max))
                drop_consumed(list);
        if (r <= 0)
                return r;
        if (list->draining)
                item = (struct span){0};
        list->first = list->draining = false;
        list->state = LIST_ITEM_END;
        list->metadata.items++;
        r = list->on_item(item.start, item.size, list->userdata);
        return r < 0 ? r : 1;
}

static int at_separator(struct scan_list *list, char c, char end, enum list_state more, enum list_state done)
{
        if (c != ',' && c != end)
                return -EBADMSG;
        list->position++;
        list->first = false;
        list->state = c == ',' ? more : done;
        return 1;
}

static int scan_list_advance(struct scan_list *list)
{
        char c;

        if (list->cursor.position == 0 && !list->draining)
                list->position = skip_space(list->input.start, list->input.size, list->position);
        if (list->position >= list->input.size)
                return 0;
        c = list->input.start[list->position];
        switch (list->state) {
        case LIST_START:
                return at_start(list, c);
        case LIST_MEMBER:
                return at_member(list, c);
        case LIST_COLON:
                return at_colon(list, c);
        case LIST_VALUE:
                return at_value(list, c);
        case LIST_ITEM:
                return at_item(list, c);
        case LIST_ITEM_END:
                return at_separator(list, c, ']', LIST_ITEM, LIST_MEMBER_END);
        case LIST_MEMBER_END:
                return at_separator(list, c, '}', LIST_MEMBER, LIST_END);
        case LIST_END:
        case LIST_STATE_COUNT:
                break;
        }
        return -EBADMSG; /* bytes after the end */
}

/* Reads the input as far as it can be understood, which is up to list->position. */
static int read_input(struct scan_list *list, const char *bytes, size_t size)
{
        int r;

        list->input = (struct span){bytes, size};
        list->position = 0;
        while ((r = scan_list_advance(list)) > 0)
                ;
        return r;
}

/* Completes what is in the buffer. Returns how much of the piece is done with: when the buffer is empty
 * then, the rest of the piece is not in it. */
static int feed_buffer(struct scan_list *list, const char *bytes, size_t size, size_t *ret_taken)
{
        size_t before = list->buffer.size, part = size < PART ? size : PART;
        int r = text_append(&list->buffer, bytes, part);

        if (r >= 0)
                r = read_input(list, list->buffer.data, list->buffer.size);
        if (r < 0)
                return r;
        *ret_taken = part;
        if (list->draining && list->position == list->buffer.size) {
                text_done(&list->buffer); /* nor is the memory of a giant kept */
        } else if (list->position >= before) {
                *ret_taken = list->position - before;
                text_clear(&list->buffer);
        } else if (list->position > 0) {
                text_consume(&list->buffer, list->position);
        }
        return 0;
}

int scan_list_feed(struct scan_list *list, const char *bytes, size_t size)
{
        int r = 0;

        while (size > 0 && r >= 0) {
                size_t taken = size;

                if (list->buffer.size > 0) {
                        r = feed_buffer(list, bytes, size, &taken);
                } else {
                        r = read_input(list, bytes, size);
                        if (r >= 0)
                                r = text_append(&list->buffer, bytes + list->position,
                                                size - list->position);
                }
                if (r >= 0 && list->buffer.size > list->item_max)
                        r = -EMSGSIZE;
                bytes += taken;
                size -= taken;
        }
        return r;
}

bool scan_list_is_endless(const struct scan_list_metadata *metadata, const char *former)
{
        return metadata->continue_token[0] &&
               (metadata->items == 0 || (former && strcmp(metadata->continue_token, former) == 0));
}

int scan_list_finish(struct scan_list *list, struct scan_list_metadata *ret_borrowed)
{
        if (list->state != LIST_END)
                return -EAGAIN;
        *ret_borrowed = list->metadata;
        return 0;
}
