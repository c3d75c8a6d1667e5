/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A store that failed: what that means for the watcher. */
#include "watcher/watcher.h"

/* status: the store's negative errno. A damaged store is thrown away and a full one stands still
 * (memory-full.h); any other failure ends the process. Returns a negative errno; fatal was said, if the
 * process ends. */
int store_failed(struct watcher *watcher, int status);
