/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects that this watcher has died or hung over, as the supervisor remembers them, so that the next life
 * gets past them: no program is run on them, or their content is not read. All others are handled as always.
 */
#include "watcher/watcher.h"

enum doubt {
        DOUBT_NONE,
        DOUBT_PROGRAM, /* no jq program is run on it */
        DOUBT_UNREAD,  /* its content is not looked at */
};

/* Takes the message. -EPROTO: it is about another watch. */
int doubts_set(struct watcher *watcher, struct message **message);
enum doubt doubt_of(const struct watcher *watcher, const char *key, const char *uid);
