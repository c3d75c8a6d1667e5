/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Before the first list: which resource the kind has, how old the server is, and which cluster this is.
 * Identity is the UID of namespace kube-system, or, where RBAC hides it, a hash of the server's URL and CA:
 * another cluster behind the same URL must never look like a cluster in which everything was deleted.
 */
#include "watcher/watcher.h"

/* The resource is not served (any more). */
void setup_rediscover(struct watcher *watcher);
/* Asks whether this is still the same cluster. */
void setup_identify(struct watcher *watcher);
/* A fresh credential is there: notes whose it is. 0, -ENOMEM. */
int setup_credential(struct watcher *watcher, const struct message_credential *credential);
/* A fresh credential is there: tries at once what has failed before, but only once in a row. */
void setup_retry(struct watcher *watcher);
