/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Telling the supervisor that a list is complete (SYNCED), and that all that exists was announced
 * (SWEPT). */
#include "watcher/watcher.h"

/* A stream is in sync: reports when all are. */
void synced_tell(struct watcher *watcher);
/* Says SWEPT, once, where nothing is left to announce. Negative: fatal was said. */
int swept_tell(struct watcher *watcher);
/* Announces all stored objects once more, then SWEPT. 0, -ENOMEM. */
int swept_again(struct watcher *watcher);
