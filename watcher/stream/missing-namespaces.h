/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Namespaces that a watch names and that do not exist: the server lists nothing in them and says nothing,
 * and a typing mistake looks like a namespace without objects. So after each sync the server is asked for
 * those that have not been seen. One that is missing is logged once, shown in the status, and asked for each
 * minute. Without the right to ask (403) nothing is reported, and the server is not asked again.
 */
#include "watcher/stream/stream.h"

/* Asks for those that were not found yet. */
void missing_namespaces_look(struct watcher *watcher);
/* The stream's namespace exists. */
void missing_namespaces_found(struct stream *stream);
bool missing_namespaces_has(const struct stream *stream);
