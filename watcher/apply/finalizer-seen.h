/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Our finalizer on the objects that the server shows. Its loss changes no fingerprint, so nothing else would
 * notice it: an object that lacks it, or has it although the watch does not want it, is announced as such.
 * For an object that is being deleted, the store notes whether our finalizer was on it then: a user who
 * takes the finalizer off such an object wants it gone. An object that was deleted without the finalizer,
 * because it had lost it or the watch did not want it at the time, is still owed its cleanup.
 */
#include "store/record.h"
#include "watcher/watcher.h"

/* Fills in what the object says of our finalizer, before it replaces the stored one. 0, or the errno of the
 * store. */
int finalizer_note(struct watcher *watcher, struct store_object *object, bool listed);
/* The same for the last state of an object that was deleted. */
int finalizer_note_end(struct watcher *watcher, struct store_object *last);
/* If the watch does not want our finalizer: forgets that it was seen on objects that are being deleted. Called
 * before anything is announced. on_progress: called for as long as it takes. 0, or the errno of the store. */
int finalizer_unhold(struct watcher *watcher, void (*on_progress)(void *userdata), void *userdata);
/* The stored object must have its JSON. */
enum finalizer_state finalizer_of_stored(const struct watcher *watcher, const struct store_object *object);
