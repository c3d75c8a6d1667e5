/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ledger's rows held against the store: finds deletions that neither a watch nor the difference between
 * two lists could show, because the store was lost.
 */
#include "watcher/watcher.h"

/* Takes a page of rows. -EPROTO: it comes too early; other negative: fatal was said. */
int ledger_check_take(struct watcher *watcher, const struct message_owed *owed);
/* Says CHECKED, once all pages are here and no question is open. */
void ledger_check_finish_maybe(struct watcher *watcher);
