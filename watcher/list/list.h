/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * LIST, page by page, each item applied as it streams in. Every LIST has a number (the mark); objects that a
 * complete one did not mark are gone. An incomplete one says nothing about what it did not show.
 */
#include "watcher/stream/stream.h"

/* Begins a list; as WatchList where that works. */
void list_start(struct stream *stream);
/* Asks for the page that is due. */
void list_next_page(struct stream *stream);
