/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a stream's state changes: what each answer of the server leads to, and after how long. */
#include "watcher/stream/stream.h"

extern const struct stream_driver stream_transitions;

/* Starts the streams that stand still: from the store where it is complete, else with a list. */
void streams_start(struct watcher *watcher);
/* A fresh credential is there: those that wait try it at once, but only once in a row. */
void streams_resume(struct watcher *watcher);
