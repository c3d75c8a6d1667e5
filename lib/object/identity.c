/* SPDX-License-Identifier: Apache-2.0 */
#include "object/identity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define API_VERSION_MAX (253 + 1 + 63)

/* UTF-8 without control characters. */
static bool is_clean(const char *text, size_t size, char banned)
{
        size_t position = 0;

        while (position < size) {
                unsigned char c = (unsigned char)text[position];
                size_t length = c < 0x80 ? 1 : utf8_sequence(text + position, size - position);

                if (length == 0 || c < ' ' || c == 0x7f || text[position] == banned)
                        return false;
                position += length;
        }
        return true;
}

static int read_identity_text(struct span value, char banned, char *out, size_t max, size_t *ret_size)
{
        int r = scan_string_into(value, out, max, ret_size);

        /* A text that we could not keep, such as one with a NUL. */
        if (r == -EBADMSG && value.size > 2 && value.start[0] == '"')
                return -ENAMETOOLONG;
        return r < 0 ? r : is_clean(out, *ret_size, banned) ? 0 : -ENAMETOOLONG;
}

int identity_text(struct span value, size_t max, char **ret)
{
        _cleanup_free_ char *text = malloc(max + 1);
        size_t size;
        int r = text ? read_identity_text(value, '\0', text, max, &size) : -ENOMEM;

        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        *ret = TAKE_PTR(text);
        return 0;
}

static int build_key(struct span namespace_name, struct span name, char key[IDENTITY_KEY_MAX + 1])
{
        size_t size = 0, name_size;
        int r = namespace_name.start
                        ? read_identity_text(namespace_name, '/', key, IDENTITY_KEY_MAX - 1, &size)
                        : 0;

        if (r >= 0 && size > 0)
                key[size++] = '/';
        if (r >= 0)
                r = read_identity_text(name, '/', key + size, IDENTITY_KEY_MAX - size, &name_size);
        return r < 0 || name_size > 0 ? r : -EBADMSG;
}

int identity_read(const char *json, size_t size, bool whole, struct identity *ret)
{
        struct scan_object object;
        size_t uid_size = 0, version_size = 0;
        int r = whole ? scan_object(json, size, &object) : scan_identity(json, size, &object);

        if (r >= 0) {
                ret->has_finalizers = object.finalizers.size > strlen("[]");
                ret->api_version = object.api_version;
                ret->kind = object.kind;
                r = build_key(object.namespace_name, object.name, ret->key);
        }
        if (r >= 0)
                r = read_identity_text(object.uid, '\0', ret->uid, IDENTITY_UID_MAX, &uid_size);
        if (r == -EAGAIN || (r >= 0 && uid_size == 0))
                return -EBADMSG;
        if (r < 0)
                return r;
        /* Without a version it may still be one of ours. */
        r = read_identity_text(object.resource_version, '\0', ret->resource_version, IDENTITY_VERSION_MAX,
                               &version_size);
        return r == -ENOMEM ? r : r < 0 || version_size == 0 ? -EBADMSG : 0;
}

static bool is_identity_text(const char *text, size_t size, char banned)
{
        return size > 0 && is_clean(text, size, banned);
}

bool identity_fits(const char *key, const char *uid)
{
        size_t key_size = strlen(key), uid_size = strlen(uid), namespace_size = strcspn(key, "/");
        const char *name = key[namespace_size] ? key + namespace_size + 1 : key;

        return key_size <= IDENTITY_KEY_MAX && uid_size <= IDENTITY_UID_MAX &&
               is_identity_text(key, namespace_size, '/') && is_identity_text(name, strlen(name), '/') &&
               is_identity_text(uid, uid_size, '\0');
}

/* ---- owner references */

struct reference {
        struct span api_version, kind, name, uid, controller;
};

static bool is_of_kind(const struct reference *reference, const char *api_version, const char *kind)
{
        char text[API_VERSION_MAX + 1];
        size_t size;

        return scan_string_equals(reference->kind, kind) &&
               read_identity_text(reference->api_version, '\0', text, API_VERSION_MAX, &size) >= 0 &&
               is_same_api_group(text, api_version);
}

/* Takes the text if it says more than what is known. */
static int judge_identity(struct span text, const struct scan_object *object, const char *api_version,
                          const char *kind, struct owner *owner)
{
        struct reference reference = {0};
        struct owner found = {0};
        const struct scan_wanted wanted[] = {
                {"apiVersion", &reference.api_version},
                {"kind", &reference.kind},
                {"name", &reference.name},
                {"uid", &reference.uid},
                {"controller", &reference.controller},
        };
        size_t size = 0;
        int r = text.start[0] == '{' ? scan_find(text, wanted, ELEMENTS(wanted)) : 0;

        if (r < 0 || !is_of_kind(&reference, api_version, kind))
                return r == -ENOMEM ? r : 0;
        found.controls = scan_is_true(reference.controller);
        r = build_key(object->namespace_name, reference.name, found.key);
        if (r >= 0)
                r = read_identity_text(reference.uid, '\0', found.uid, IDENTITY_UID_MAX, &size);
        if (r < 0 || size == 0) {
                owner->ignored = true;
                return r == -ENOMEM ? r : 0;
        }
        if (scan_string_equals(object->uid, found.uid) ||
            (owner->key[0] && (owner->controls || !found.controls)))
                return 0;
        found.ignored = owner->ignored;
        *owner = found;
        return 0;
}

int owner_find(const char *json, size_t size, const char *api_version, const char *kind, struct owner *ret)
{
        struct scan_object object = {0};
        struct scan_walk walk;
        int r = scan_object(json, size, &object);

        *ret = (struct owner){0};
        SCAN_ELEMENTS(walk, object.owner_references) {
                r = judge_identity(walk.value, &object, api_version, kind, ret);
                if (r < 0)
                        break;
        }
        return r == -EAGAIN ? -EBADMSG : r;
}

bool owner_is(const struct owner *owner, const char *key, const char *uid)
{
        const char *name = strchr(owner->key, '/');

        name = name && !strchr(key, '/') ? name + 1 : owner->key;
        return owner->key[0] && strcmp(owner->uid, uid) == 0 && strcmp(name, key) == 0;
}

uint64_t resource_version_number(const char *version)
{
        size_t digits = strspn(version, "0123456789");

        return digits > 0 && digits < 19 && version[digits] == '\0' ? strtoull(version, NULL, 10) : 0;
}
