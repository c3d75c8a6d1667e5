/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A watch of owned objects (`owns`): a change is announced as a change of the owner, which the owner
 * references name. The store holds the objects, and which owner has which, so that the owner's handler can
 * be given them. Nothing is ever `deleted` here: an owned object that is gone is a change of its owner like
 * any other.
 */
#include "store/record.h"
#include "watcher/watcher.h"

static inline bool is_owned(const struct watcher *watcher)
{
        return watcher->config->owner_kind[0] != '\0';
}

/* Before the object replaces the stored one: notes its owner, and tells the one that does not own it any
 * more. 0, or the errno of the store. */
int owned_before_put(struct watcher *watcher, const struct store_object *object);
/* The object is stored already, perhaps when the watch had another kind: completes what the store knows of owners. 0,
 * or the errno of the store. */
int owned_again(struct watcher *watcher, const struct store_object *object);
/* Announces the change. 0, or the errno of the store. */
int announce_owners(struct watcher *watcher, const struct store_object *object);
/* The object is gone: announces that, and removes it. Negative: the store failed (fatal was said). */
int owned_gone(struct watcher *watcher, const char *key);
