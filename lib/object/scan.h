/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The scanner: cuts a LIST into items and finds an object's metadata without building a tree. It is the hot
 * path and the one JSON parser of our own; a fuzz target holds it against cJSON.
 *
 * Input is bytes from the API server, which may lie: every function bounds its work, accepts what RFC 8259
 * accepts as far as it looks (what it skips is checked for balance of brackets and strings only), and
 * returns -EBADMSG otherwise, -EAGAIN when the input ends too early (a piece of a stream). Spans point into
 * the input; nothing is copied. Depth costs nothing and is not bounded: an object that is nested more deeply
 * than we thought of must not make a LIST unreadable. Below SCAN_DEPTH_MAX brackets are only counted, not
 * told apart.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

#define SCAN_DEPTH_MAX 512 /* whose kinds of brackets are known */

struct span {
        const char *start; /* NULL: absent */
        size_t size;
};

/* The values of metadata's members as raw JSON (strings with their quotes); absent ones have start NULL. */
struct scan_object {
        struct span whole, api_version, kind, metadata, status;
        struct span name, namespace_name, uid, resource_version, generation, deletion_timestamp, labels,
                annotations, finalizers, owner_references, managed_fields;
};

/* Skips white space and one JSON value at `input`. */
int scan_value(const char *input, size_t size, struct span *ret_value);
/* Finds the metadata of one object. The last of duplicate members wins, as in Go. */
int scan_object(const char *input, size_t size, struct scan_object *ret);
/* Finds the object's metadata alone, the first, and the kind if that comes before it, as servers write it.
 * Nothing after that is read: this is enough to identify an object before it is read. */
int scan_identity(const char *input, size_t size, struct scan_object *ret);
/* Calls for each member of an object: key span is raw (quoted). A negative return ends and is returned. */
typedef int (*scan_member_t)(struct span key, struct span value, void *userdata);
int scan_members(struct span object, scan_member_t callback, void *userdata);
/* Finds some members of an object: *place is the value, the last of duplicates. What the object does not have is left as it
 * is. */
struct scan_wanted {
        const char *name;
        struct span *place;
};
int scan_find(struct span object, const struct scan_wanted *wanted, size_t count);
/* One member; absent if it is missing, or if `object` is no object. */
struct span scan_get(struct span object, const char *name);
/* Whether the value is `true`. */
static inline bool scan_is_true(struct span value)
{
        return value.size == 4 && memcmp(value.start, "true", 4) == 0;
}
/* Whether this object, which is one, has no members. */
static inline bool scan_is_empty(struct span object)
{
        return object.start[1 + strspn(object.start + 1, " \t\r\n")] == '}';
}
/* Whether the object has a deletionTimestamp; false if it cannot be read. */
static inline bool scan_is_going(const char *json, size_t size)
{
        struct scan_object object;

        return scan_object(json, size, &object) >= 0 && object.deletion_timestamp.start;
}
/* Goes through the members of an object, or the elements of an array, one by one:
 *
 *         struct scan_walk walk;
 *
 *         SCAN_MEMBERS(walk, object)
 *                 ... walk.key, walk.value
 *         if (walk.status < 0) ...
 *
 * What is absent, or of another type, has none. status: 0, or -EBADMSG where the rest cannot be read. */
struct scan_walk {
        struct span key; /* raw (quoted); absent in an array */
        struct span value;
        struct span whole;
        size_t position;
        bool begun;
        int status;
};
struct scan_walk scan_begin(struct span whole, char bracket);
bool scan_next(struct scan_walk *walk); /* false: it was the last one */
#define SCAN_MEMBERS(walk, object) for ((walk) = scan_begin(object, '{'); scan_next(&(walk));)
#define SCAN_ELEMENTS(walk, array) for ((walk) = scan_begin(array, '['); scan_next(&(walk));)
/* Decodes a JSON string span (escapes, surrogates) into a string that the caller owns. -EBADMSG when it is
 * no string or holds NUL. */
int scan_string(struct span value, char **ret);
/* The same into `out`, which has room for `max` bytes and the NUL. -ENAMETOOLONG when it is longer. */
int scan_string_into(struct span value, char *out, size_t max, size_t *ret_size);
/* Decodes only if it must: an escaped text is longer than the text itself. */
bool scan_string_decodes_to(struct span value, const char *string);
/* `size`: of the string, which may be of a table that knows it. */
static inline bool scan_string_is(struct span value, const char *string, size_t size)
{
        if (!value.start || value.size < size + 2 || value.start[0] != '"')
                return false;
        return value.size == size + 2 ? memcmp(value.start + 1, string, size) == 0
                                      : scan_string_decodes_to(value, string);
}
static inline bool scan_string_equals(struct span value, const char *string)
{
        return scan_string_is(value, string, strlen(string));
}
