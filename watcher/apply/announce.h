/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Telling the supervisor of dirty keys, as far as the credit goes. One mechanism for an idle and a busy
 * watcher: a source of the lowest priority commits and announces when nothing else is to be done; while
 * events pour in, each full batch does (announce_due), and, where they leave no such time, changes that have
 * waited long enough (announce_in_time).
 *
 * A negative result of these functions: fatal was said.
 */
#include "watcher/watcher.h"

void announce_soon(struct watcher *watcher);
/* Announces soon, or at once where changes have waited long enough. Must not be called by a visitor of
 * the store. */
int announce_in_time(struct watcher *watcher);
int announce_now(struct watcher *watcher);
/* While events pour in: when a batch is full. */
int announce_due(struct watcher *watcher);
/* Announces the deletions that a former life announced and nobody has confirmed; once, before the streams
 * begin. */
int announce_tombstones(struct watcher *watcher);
/* Says to which epoch all that follows belongs. */
int announce_epoch(struct watcher *watcher);
