/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a stream's state changes: what each answer of the server leads to, and after how long. */
#include "watcher/stream/stream.h"

/* Starts the streams that stand still: from the store where it is complete, else with a list. */
void streams_start(struct watcher *watcher);
/* A fresh credential is there: those that wait try it at once, but only once in a row. */
void streams_resume(struct watcher *watcher);

/* What happened to a stream: decides what follows. serial: of the credential that was used; 0 where that is not to
 * blame. */
void stream_failed(struct stream *stream, enum phase phase, const struct kube_error *error, uint64_t serial);
/* The list is complete, up to this version. */
void stream_listed(struct stream *stream, const char *version);
/* The server ended the watch in order, after a while. */
void stream_closed(struct stream *stream);
/* The store cannot be trusted any more: everything is listed again. */
void stream_replace(struct stream *stream);
