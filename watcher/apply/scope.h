/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The scope of a watch, as text that is compared and kept: a hash of the kind of object, then one of
 * everything that chooses among them. When the second differs from what the store or the ledger knows, a
 * missing object may still exist; when the first does, it was of another kind, and nothing can be asked
 * about it.
 */
#include "object/identity.h"
#include "watcher/stream/stream.h"
#include "watcher/watcher.h"

/* Owned by the caller; NULL: no memory. */
char *scope_new(const struct message_config_watcher *config);
/* The scope, and how stored objects were fingerprinted: where both are the same, stored objects are as
 * good as listed ones. Owned by the caller; NULL: no memory. */
char *basis_new(const struct message_config_watcher *config, const char *scope);
bool scope_is_other_resource(const char *known, const char *scope);
/* Whether the patterns of the watch choose the namespace of this key. */
bool scope_chooses(const struct watcher *watcher, const char *key);
/* Whether the kind is the one that was asked for, as far as it is given: an object, or a bookmark. */
bool scope_is_kind(const struct watcher *watcher, struct span api_version, struct span kind);
/* Whether that object was asked for: its kind, and its namespace. */
bool scope_fits(const struct stream *stream, const struct identity *identity);
/* Whether an object that a complete list does not show was deleted. */
bool absence_is_deletion(const struct watcher *watcher);
/* Stores cluster, scope and the number of the LIST. explained: every missing object is accounted for.
 * 0, or the errno of the store. */
int meta_save(struct watcher *watcher, bool explained);

/*
 * Objects that this watcher has died or hung over, as the supervisor remembers them, so that the next life
 * gets past them: no program is run on them, or their content is not read. All others are handled as always.
 */
enum doubt {
        DOUBT_NONE,
        DOUBT_PROGRAM, /* no jq program is run on it */
        DOUBT_UNREAD,  /* its content is not looked at */
};

/* Takes the message. -EPROTO: it is about another watch. */
int doubts_set(struct watcher *watcher, struct message **message);
enum doubt doubt_of(const struct watcher *watcher, const char *key, const char *uid);
