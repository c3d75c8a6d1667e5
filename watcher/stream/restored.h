/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A database that was restored from a backup, and so went back in time. What the supervisor knows of versions
 * belongs to the lost time then: it compares versions with those of our own last writes to an object, and a
 * change with a lower version would pass for one of these writes. So each message about changes carries the
 * epoch that they belong to; a restore begins another one. So does a life that cannot resume: its store, with
 * the version that it had reached, is new or does not fit, so nobody knows whether the database went back
 * before. The epoch is in the store: whoever is killed, the supervisor hears of it in the end.
 */
#include "watcher/watcher.h"

/* For a while after a restore, the absence of an object is nobody's will. */
bool restored_lately(const struct watcher *watcher);
/* Notes that the database has gone back in time. 0, or the errno of the store. */
int restored_note(struct watcher *watcher);
/* Takes over the epoch, and the time of the restore, from the last life. 0, or the errno of the store. */
int restored_load(struct watcher *watcher);
/* Another epoch, which begins with a list. 0, or the errno of the store. */
int epoch_begin(struct watcher *watcher);
