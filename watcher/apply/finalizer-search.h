/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * While the operator is uninstalled, and after its ledger was lost: objects that the watch does not select, and
 * that carry its finalizer all the same. No store has them, and where the ledger was lost, nothing else knows
 * of them. So the server is asked once for everything in the watch's namespaces, without the selectors, page
 * by page, metadata alone; those with our finalizer are announced: like objects of the store, or as objects
 * that have just left. Until that is through, or while the server cannot be asked, the watcher does not say
 * that no object carries the finalizer.
 */
#include "watcher/watcher.h"

/* Begins the search, if the watch has a selector. as: how objects are announced, CHANGE_UPDATED or
 * CHANGE_UNSELECTED. */
void finalizer_search_begin(struct watcher *watcher, enum change_kind as);
/* Goes on with it, if there is one. Also true while the server refuses it: watcher->search.unseen says why. */
bool finalizer_search_is_through(struct watcher *watcher);
