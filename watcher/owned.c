/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch of owned objects (`owns`): what changes is announced as a change of its owner, found by the owner
 * references. The store holds the objects, and which owner has which, so that the owner's handler can be
 * given them. Nothing is ever `deleted` here: that a child is gone is a change of its owner like any other.
 */
#include <errno.h>
#include <string.h>

#include "watcher/watcher.h"

struct owner {
        char *uid, *name;
        bool controls;
};

static void owner_done(struct owner *owner)
{
        free(owner->uid);
        free(owner->name);
        *owner = (struct owner){0};
}

/* ---- owner references */

struct reference {
        struct span api_version, kind, name, uid, controller;
};

static int take_member(struct span key, struct span value, void *userdata)
{
        struct reference *reference = userdata;
        const struct {
                const char *name;
                struct span *place;
        } member[] = {
                {"apiVersion", &reference->api_version},
                {"kind", &reference->kind},
                {"name", &reference->name},
                {"uid", &reference->uid},
                {"controller", &reference->controller},
        };

        for (size_t i = 0; i < ELEMENTS(member); i++)
                if (scan_string_equals(key, member[i].name))
                        *member[i].place = value;
        return 0;
}

/* Versions of a group are the same objects. */
static bool is_same_group(const char *a, const char *b)
{
        const char *slash_a = strchr(a, '/'), *slash_b = strchr(b, '/');
        size_t size_a = slash_a ? (size_t)(slash_a - a) : 0, size_b = slash_b ? (size_t)(slash_b - b) : 0;

        return size_a == size_b && strncmp(a, b, size_a) == 0;
}

static int judge(const struct watcher *watcher, struct span text, struct owner *owner)
{
        _cleanup_free_ char *api_version = NULL, *kind = NULL;
        struct reference reference = {0};
        bool controls;
        int r = scan_members(text, take_member, &reference);

        if (r >= 0)
                r = scan_string(reference.api_version, &api_version);
        if (r >= 0)
                r = scan_string(reference.kind, &kind);
        if (r < 0)
                return r;
        controls = reference.controller.size == 4; /* true */
        if (strcmp(kind, watcher->config->owner_kind) != 0 ||
            !is_same_group(api_version, watcher->config->owner_api_version) ||
            (owner->uid && (owner->controls || !controls)))
                return 0;
        owner_done(owner);
        owner->controls = controls;
        r = scan_string(reference.uid, &owner->uid);
        return r < 0 ? r : scan_string(reference.name, &owner->name);
}

/* The one that controls it, else the first; uid NULL: none of the watched kind. */
static int find_owner(const struct watcher *watcher, const char *json, size_t size, struct owner *ret)
{
        struct owner owner = {0};
        struct scan_object object;
        const char *position, *end;
        int r = scan_object(json, size, &object);

        position = object.owner_references.start;
        end = position ? position + object.owner_references.size : NULL;
        for (position = position && *position == '[' ? position + 1 : end; r >= 0 && position < end;) {
                struct span text;

                position += strspn(position, " \t\r\n,");
                if (*position == ']' || scan_value(position, (size_t)(end - position), &text) < 0)
                        break;
                position = text.start + text.size;
                r = text.start[0] == '{' ? judge(watcher, text, &owner) : 0;
        }
        if (r < 0) {
                owner_done(&owner);
                return r == -ENOMEM ? r : 0; /* a reference that cannot be read is none */
        }
        *ret = owner;
        return 0;
}

/* ---- what is announced */

/* As "namespace/name": whether the owner belongs to a namespace, the supervisor's ledger knows. */
static int mark_owner(struct watcher *watcher, const char *child_key, const char *version,
                      const struct owner *owner)
{
        const char *slash = strchr(child_key, '/');
        _cleanup_free_ char *key = NULL;
        struct record_change change = {
                .kind = CHANGE_UPDATED, .uid = owner->uid, .resource_version = version ? version : ""};

        if (asprintf(&key, "%.*s%s%s", slash ? (int)(slash - child_key) : 0, child_key, slash ? "/" : "",
                     owner->name) < 0) {
                key = NULL;
                return -ENOMEM;
        }
        change.key = key;
        return store_dirty_add(watcher->store, &change);
}

/* What the store holds of the key is over: its owner is told, and has it no more. */
static int leave_owner(struct watcher *watcher, const char *key, const struct owner *stays)
{
        struct owner owner = {0};
        struct store_object stored;
        int r = store_get(watcher->store, key, &stored);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = find_owner(watcher, stored.json, stored.json_size, &owner);
        if (r >= 0 && owner.uid && !(stays && stays->uid && strcmp(stays->uid, owner.uid) == 0)) {
                r = store_owner_remove(watcher->store, owner.uid, key);
                if (r >= 0)
                        r = mark_owner(watcher, key, stored.resource_version, &owner);
        }
        owner_done(&owner);
        store_object_done(&stored);
        return r;
}

/* A related object is announced by its own key. */
static int mark_itself(struct watcher *watcher, const char *key, const char *uid, const char *version)
{
        struct record_change change = {
                .kind = CHANGE_UPDATED, .key = key, .uid = uid, .resource_version = version};

        return store_dirty_add(watcher->store, &change);
}

int owned_before_put(struct watcher *watcher, const struct store_object *object)
{
        struct owner owner = {0};
        int r;

        if (watcher->config->related)
                return 0;
        r = find_owner(watcher, object->json, object->json_size, &owner);

        if (r >= 0)
                r = leave_owner(watcher, object->key, &owner);
        if (r >= 0 && owner.uid)
                r = store_owner_add(watcher->store, owner.uid, object->key);
        owner_done(&owner);
        return r;
}

int owned_changed(struct watcher *watcher, const struct store_object *object)
{
        struct owner owner = {0};
        int r;

        if (watcher->config->related)
                return mark_itself(watcher, object->key, object->uid, object->resource_version);
        r = find_owner(watcher, object->json, object->json_size, &owner);

        if (r >= 0 && owner.uid)
                r = mark_owner(watcher, object->key, object->resource_version, &owner);
        owner_done(&owner);
        return r;
}

static int leave(struct watcher *watcher, const char *key)
{
        struct store_object stored;
        int r = store_peek(watcher->store, key, &stored);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = mark_itself(watcher, key, stored.uid, stored.resource_version);
        store_object_done(&stored);
        return r;
}

int owned_gone(struct watcher *watcher, const char *key)
{
        int r = watcher->config->related ? leave(watcher, key) : leave_owner(watcher, key, NULL);

        if (r >= 0)
                r = store_remove(watcher->store, key);
        return r < 0 ? store_failed(watcher, r) : announce_due(watcher);
}
