/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/apply/announce-owner.h"

#include <errno.h>
#include <string.h>

#include "ipc/message-id.h"
#include "object/identity.h"
#include "store/dirty.h"
#include "store/owner.h"
#include "store/writer.h"
#include "watcher/apply/announce.h"
#include "watcher/store-failure.h"

/* Logs, once in a life, that an owner reference is ignored because no object can have this name or uid.
 * All of them are counted. */
static void note_ignored(struct watcher *watcher, const char *key)
{
        if (watcher->count.owners_ignored++ > 0)
                return;
        log_write(LOG_WARNING, MESSAGE_ID_OWNER_IGNORED,
                  LOG_FIELDS({"RECONCILED_WATCH", watcher->config->watch}, {"RECONCILED_KEY", key}),
                  "watch %s, %s: an owner reference to a %s is ignored: no object can have its name and uid "
                  "(too long, or control characters); only the first such object is logged, the others are "
                  "counted",
                  watcher->config->watch, key, watcher->config->owner_kind);
}

/* An object that cannot be read has no owner. */
static void find_owner_reference(const struct watcher *watcher, const char *json, size_t size,
                                 struct owner *ret)
{
        if (owner_find(json, size, watcher->config->owner_api_version, watcher->config->owner_kind, ret) < 0)
                *ret = (struct owner){0};
}

/* ---- what is announced */

/* The key is "namespace/name"; the supervisor's ledger knows whether the owner belongs to a namespace. version: of the
 * child; if it has left the owner, the last one in which it had not. */
static int mark_owner(struct watcher *watcher, const char *version, bool has_left, const struct owner *owner)
{
        char text[IDENTITY_VERSION_MAX + 2];
        struct record_change change = {
                .kind = CHANGE_CHILD,
                .key = owner->key,
                .uid = owner->uid,
                .resource_version = text,
        };

        snprintf(text, sizeof(text), "%s%s", has_left ? "-" : "", version);
        if (resource_version_number(version) == 0)
                text[0] = '\0';
        return store_dirty_add(watcher->store, &change);
}

/* The stored object is gone or replaced: announces its owner, which does not own it any more. stays: its
 * present owner. */
static int leave_owner(struct watcher *watcher, const char *key, const struct owner *stays)
{
        struct owner owner;
        struct store_object stored;
        int r = store_get(watcher->store, key, &stored);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        find_owner_reference(watcher, stored.json, stored.json_size, &owner);
        if (owner.key[0] &&
            !(stays && strcmp(stays->uid, owner.uid) == 0 && strcmp(stays->key, owner.key) == 0)) {
                r = store_owner_remove(watcher->store, owner.uid, key);
                if (r >= 0)
                        r = mark_owner(watcher, stored.resource_version, true, &owner);
        }
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
        struct owner owner;
        int r;

        if (watcher->config->related)
                return 0;
        find_owner_reference(watcher, object->json, object->json_size, &owner);
        if (owner.ignored)
                note_ignored(watcher, object->key);
        r = leave_owner(watcher, object->key, &owner);
        return r >= 0 && owner.key[0] ? store_owner_add(watcher->store, owner.uid, object->key) : r;
}

int owned_again(struct watcher *watcher, const struct store_object *object)
{
        struct owner owner;

        if (watcher->config->related)
                return 0;
        find_owner_reference(watcher, object->json, object->json_size, &owner);
        return owner.key[0] ? store_owner_add(watcher->store, owner.uid, object->key) : 0;
}

int announce_owners(struct watcher *watcher, const struct store_object *object)
{
        struct owner owner;

        if (watcher->config->related)
                return mark_itself(watcher, object->key, object->uid, object->resource_version);
        find_owner_reference(watcher, object->json, object->json_size, &owner);
        return owner.key[0] ? mark_owner(watcher, object->resource_version, false, &owner) : 0;
}

static int leave_left_owner(struct watcher *watcher, const char *key)
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
        int r = watcher->config->related ? leave_left_owner(watcher, key) : leave_owner(watcher, key, NULL);

        if (r >= 0)
                r = store_remove(watcher->store, key);
        return r < 0 ? store_failed(watcher, r) : announce_due(watcher);
}
