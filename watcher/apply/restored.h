/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A database that was restored from a backup, and so went back in time. For a while afterwards changes are
 * announced without a version: the supervisor compares versions with those of our own last writes to an
 * object, which belong to the lost time, so a change with a lower version would pass for one of these
 * writes. If the watcher is killed in that time, before the supervisor has heard of such a change, the next
 * one announces it; so the time of the restore is in the store.
 */
#include "watcher/watcher.h"

/* Whether versions mean nothing for now. */
bool restored_lately(const struct watcher *watcher);
/* Notes that the database has gone back in time. 0, or the errno of the store. */
int restored_note(struct watcher *watcher);
/* Takes over the time of the restore from the last life. 0, or the errno of the store. */
int restored_load(struct watcher *watcher);
