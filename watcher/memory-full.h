/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Confidential objects are kept in memory, within a bound (`secrets.memory`). A watch that reaches it
 * neither ends the other watches nor starts over again and again: it stands still with what it has, says so,
 * and is subject to its deadline. The next life begins with an empty store: there may be fewer objects by
 * then. The supervisor begins it (supervisor/watches/memory-retry.c), or the next start does.
 */
#include "watcher/watcher.h"

/* The store has no more room. Returns -ECANCELED. */
int memory_is_full(struct watcher *watcher);

/* Whether the watcher asks for nothing any more. */
static inline bool watcher_is_over(const struct watcher *watcher)
{
        return watcher->child->stopping || watcher->full;
}
