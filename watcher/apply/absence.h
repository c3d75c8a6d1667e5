/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects that are in the store and that the server did not show: a complete LIST did not have them, or
 * their namespace is not watched any more. A negative result: the store failed (fatal was said).
 */
#include "watcher/apply/verify.h"
#include "watcher/stream/stream.h"

/* A complete list did not have these. */
int absence_listed(struct stream *stream);
/* Namespaces that are not watched any more. */
int absence_out_of_scope(struct watcher *watcher);
