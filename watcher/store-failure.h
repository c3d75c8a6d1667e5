/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A store that failed: what that means for the watcher. */
#include "watcher/watcher.h"

/*
 * Confidential objects are kept in memory, within a bound (`secrets.memory`). A watch that reaches it
 * neither ends the other watches nor starts over again and again: it stands still with what it has, says so,
 * and is subject to its deadline. The next life begins with an empty store: there may be fewer objects by
 * then. The supervisor begins it (supervisor/watches/begin-end.c), or the next start does.
 *
 * The store has no more room. Returns -ECANCELED.
 */
int memory_is_full(struct watcher *watcher);

/* Whether the watcher asks for nothing any more. */
static inline bool watcher_is_over(const struct watcher *watcher)
{
        return watcher->child->stopping || watcher->full;
}

/* status: the store's negative errno. A damaged store is thrown away and a full one stands still; any other failure ends the process. Returns a negative errno; fatal was said, if the
 * process ends. */
int store_failed(struct watcher *watcher, int status);
