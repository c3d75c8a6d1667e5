/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * JSON as a tree of cJSON's that loses nothing. cJSON's own parser makes doubles of numbers, cuts texts at a
 * \u0000 and gives up below 1,000 levels; an API server keeps 64-bit integers and takes 10,000 levels. Here
 * a number is a cJSON_Raw node that holds its text, and so is a text with a \u0000 in it: what is printed is
 * what was read. Strict: what RFC 8259 does not allow is refused, and so are bytes that are not
 * UTF-8.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* An API server takes 10,000 levels of an object; a LIST and managedFields put some around it. */
#define JSON_DEPTH_MAX   10240
/* The number of values: an object that an API server accepts has a fraction of it. */
#define JSON_VALUES_MAX  2000000
/* The number of values in a tree of what a handler or a tenant has written. A value takes 112 bytes and
 * more: "1," of a long list of numbers is 60 times as large as a tree. So there are 15 MiB at most. An
 * object with a megabyte of YAML has half as many values. */
#define JSON_BOUNDED_MAX 100000
/* The same for an object as the API server has it, whose managedFields name each field once more. */
#define JSON_SERVED_MAX  200000

/* Reads one value, with white space around it. -EBADMSG: invalid from the byte *ret_where on, which may be
 * the end of `text`, or the first byte after the value, or of one value too many; -ENOMEM. `ret_where` may
 * be NULL. */
int json_read(const char *text, size_t size, cJSON **ret, size_t *ret_where);
/* Likewise, but -E2BIG: it has more than JSON_BOUNDED_MAX values. */
int json_read_bounded(const char *text, size_t size, cJSON **ret, size_t *ret_where);
/* json_read(); NULL: no JSON, or no memory. */
cJSON *json_parse(const char *text, size_t size);
/* json_read_bounded(); NULL: no JSON, too many values, or no memory. */
cJSON *json_parse_bounded(const char *text, size_t size);
/* Likewise, with JSON_SERVED_MAX. */
cJSON *json_parse_served(const char *text, size_t size);

static inline void cleanup_json(cJSON **tree)
{
        cJSON_Delete(*tree);
}
#define _cleanup_json_ _cleanup_(cleanup_json)

static inline cJSON *json_member(const cJSON *object, const char *name) /* NULL if there is none */
{
        return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* The text of a member, borrowed; NULL if there is no such member, or it is no text. */
static inline const char *json_text_of(const cJSON *object, const char *name)
{
        return cJSON_GetStringValue(json_member(object, name));
}

/* The text of a member, borrowed; "" if there is no such member, or it is no text. */
const char *json_text(const cJSON *object, const char *name);

/* The member of this name. *at is the member that is tried first (begin with NULL); it becomes the one after
 * the member that was found: a caller that asks for members in their order finds each at once, where cJSON
 * would go through all of them. NULL if there is none. */
cJSON *json_member_from(const cJSON *object, const char *name, const cJSON **at);
/* The order of members does not matter. Numbers are equal when they are written alike. Replaces
 * cJSON_Compare(), which takes twice as long for each level. */
bool json_equal(const cJSON *a, const cJSON *b);
bool json_is_number(const cJSON *item);
/* The number, rounded to a double; `otherwise` if the item is no number. */
double json_number(const cJSON *item, double otherwise);
/* The first number that no double can hold (1e999): API servers refuse the whole document for it. NULL if
 * there is none. Borrowed from the tree. */
const cJSON *json_find_overflow(const cJSON *item);
/* The members of an object by name, for objects that may have any number of them. json_names_done() in any case; the
 * members are borrowed from the tree. */
struct json_names {
        const cJSON **member; /* sorted */
        size_t count;
};
int json_names_sort(const cJSON *object, struct json_names *ret); /* 0 or -ENOMEM; of no object: none */
const cJSON *json_names_find(const struct json_names *names, const char *name); /* NULL if there is none */
void json_names_done(struct json_names *names);

/* A member whose name another member of its object has as well; NULL if there is none. Sorts the names, so that an
 * object may have any number of members. 0 or -ENOMEM. Borrowed from the tree. */
int json_find_duplicate(const cJSON *root, const cJSON **ret);
/* Appends the path of the item in the tree: children[0].data.key. */
void json_append_path(const cJSON *root, const cJSON *item, struct text *out);
cJSON *json_new_integer(int64_t value); /* NULL: no memory */
