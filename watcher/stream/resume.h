/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the last life ended: a store that holds everything up to a resourceVersion needs no LIST, but a
 * WATCH from there. A store that belongs to another cluster, another selection or another way to fingerprint
 * must never be taken for complete: where there is any doubt, everything is listed.
 */
#include "store/meta.h"
#include "watcher/stream/stream.h"

bool resume_is_allowed(const struct watcher *watcher);
bool resume_position_fits(const struct watcher *watcher, const struct store_position *position);
/* Takes the positions over, for all streams or for none. Negative: the store failed (fatal was said). */
int resume_streams(struct watcher *watcher);
/* Saves how far the streams are, or that nothing is complete. 0, or the errno of the store. */
int positions_save(struct watcher *watcher);
int positions_forget(struct watcher *watcher);
/* A stream that has listed nothing, in no life, is on record as that: workers must not take what the store lacks for
 * missing. In the writer's transaction; 0, or the errno of the store. */
int positions_note_unlisted(struct watcher *watcher);
