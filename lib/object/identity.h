/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which object it is, and whose: text that others write, and that becomes keys of tables, parts of paths and
 * of messages. This is the one place that says what such text may be; all later code has room for it.
 */
#include "object/scan.h"

/* Kubernetes' own bounds: a namespace of 63 and a name of 253 bytes; a UID has 36, a version 20 digits. The
 * server asks for less: it takes names of some kinds (RBAC) and owner references of any length. */
#define IDENTITY_KEY_MAX     (63 + 1 + 253)
#define IDENTITY_UID_MAX     64
#define IDENTITY_VERSION_MAX 64

struct identity {
        char key[IDENTITY_KEY_MAX + 1]; /* "namespace/name", or "name" */
        char uid[IDENTITY_UID_MAX + 1];
        char resource_version[IDENTITY_VERSION_MAX + 1];
        bool has_finalizers; /* of anybody */
        struct span api_version,
                kind; /* as scanned, of the text that was read; absent in items of some lists */
};

/* whole: the rest is checked too, because nobody else checks that it is an object at all. -EBADMSG: the
 * object cannot be identified. -ENAMETOOLONG: the object is none of ours, because its name or UID is longer
 * than the bounds or holds control characters. */
int identity_read(const char *json, size_t size, bool whole, struct identity *ret);

/* *ret: a UID or resourceVersion, or another text that is kept, of at most `max` bytes; "" is one. -EBADMSG: it is none, too
 * long, or not UTF-8 without control characters. */
int identity_text(struct span value, size_t max, char **ret);

/* The length of the group in "group/version"; 0 for "version", the core group. */
static inline size_t api_group_size(const char *api_version)
{
        const char *slash = strchr(api_version, '/');

        return slash ? (size_t)(slash - api_version) : 0;
}

static inline bool is_same_api_group(const char *a, const char *b)
{
        size_t size = api_group_size(a);

        return size == api_group_size(b) && memcmp(a, b, size) == 0;
}

/* Whether texts that were not read from an object (an older store has them, or the leader record) are such a key and UID. */
bool identity_fits(const char *key, const char *uid);

/* resourceVersions are numbers, by contract since Kubernetes 1.35; 0 if it is not a number, and so has no order. */
uint64_t resource_version_number(const char *version);

/* The owner of one kind that an object's owner references name. */
struct owner {
        char key[IDENTITY_KEY_MAX + 1]; /* as an owner in the object's own namespace; "": there is none */
        char uid[IDENTITY_UID_MAX + 1];
        bool controls;
        bool ignored; /* a reference to that kind names no object that there can be */
};

/* Finds the owner that controls the object, else the first. The version of the group does not matter. No
 * reference hides another one, and an object that names itself is not its own owner: each change that its
 * run makes to it would be a change of its child. -EBADMSG: this is no object. */
int owner_find(const char *json, size_t size, const char *api_version, const char *kind, struct owner *ret);

/* Whether that is the object with this key: an owner in a namespace has its objects there and nowhere else;
 * one that belongs to no namespace has them everywhere. */
bool owner_is(const struct owner *owner, const char *key, const char *uid);
