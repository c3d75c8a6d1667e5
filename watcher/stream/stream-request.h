/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How a stream's requests are worded: paths with their parameters, the accepted form, and what is left out
 * when a server refuses it. LIST asks for the newest state (no resourceVersion: served consistently); a
 * continue page carries none; a watch that goes on never asks for initial events.
 */
#include "watcher/stream/stream.h"

#define REQUEST_ACCEPT_LIST_METADATA "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

enum request { REQUEST_LIST, REQUEST_INITIAL, REQUEST_WATCH, REQUEST_PROBE };

/* Owned by the caller; NULL: no memory. */
char *request_path(const struct stream *stream, enum request request);
/* The Accept header; NULL: the client's own. */
const char *request_accept(const struct watcher *watcher, enum request request);
/* Leaves one more parameter out for an hour; false: nothing is left to leave out. */
bool request_reduce(struct watcher *watcher, enum phase phase);
bool request_is_left_out(const struct watcher *watcher, enum optional optional);
/* Whether the list may come as the first events of a watch. */
bool request_may_stream_list(const struct stream *stream);
