/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the last life ended: a store that holds everything up to a resourceVersion needs no LIST, but a
 * WATCH from there. A store that belongs to another cluster, another selection or another way to fingerprint
 * must never be taken for complete: where there is any doubt, everything is listed.
 */
#include "store/meta.h"
#include "watcher/stream/stream.h"
#include "watcher/watcher.h"

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

/*
 * A database that was restored from a backup, and so went back in time. What the supervisor knows of versions
 * belongs to the lost time then: it compares versions with those of our own last writes to an object, and a
 * change with a lower version would pass for one of these writes. So each message about changes carries the
 * epoch that they belong to; a restore begins another one. So does a life that cannot resume: its store, with
 * the version that it had reached, is new or does not fit, so it is unknown whether the database went back
 * before. The epoch is in the store: whichever process is killed, the supervisor gets it in the end.
 */

/* Whether a restore was a short while ago: the absence of an object is nobody's will then. */
bool restored_lately(const struct watcher *watcher);
/* Notes that the database has gone back in time. 0, or the errno of the store. */
int restored_note(struct watcher *watcher);
/* Takes over the epoch, and the time of the restore, from the last life. 0, or the errno of the store. */
int restored_load(struct watcher *watcher);
