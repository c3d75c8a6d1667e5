/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Objects that a watcher has died or hung over. */
#include "controller/controller.h"

#define DOUBTS_MAX 400 /* of a watch: they fit into one message; there are few or none */

/* unread: it died while it read the object; false: a jq program ran on it. */
void doubt_blame(struct watch *watch, const char *key, const char *uid, bool unread, const char *cause);
bool doubt_is(const struct watch *watch, const char *key, const char *uid);
