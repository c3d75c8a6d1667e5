/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From the server's words to the store: updates and deletions. No deletion may be recorded that is not
 * certain (absence_is_deletion, or a GET's answer), and none may be lost: it is a tombstone and a dirty
 * entry in one transaction.
 *
 * A negative result of these functions: the store failed (fatal was said), or the answer is not one to our question
 * (apply_foreign()).
 */
#include "watcher/stream/stream.h"

/* Takes an object that was shown. listed: by a list, which may also be the first events of a watch. */
int apply_object(struct stream *stream, const char *json, size_t size, bool listed);
/* The server decides which namespace and kind an object has. An object that was not asked for is refused, and
 * the answer that holds it is given up: stream->stream_error says why, and so does the log. Returns -ECANCELED. */
int apply_foreign(struct stream *stream, const char *key, struct span kind);
/* Takes note of a listed object that is too large to be read. */
int apply_skipped(struct stream *stream);
/* Takes a DELETED event, with the last state. */
int apply_deleted(struct stream *stream, const char *json, size_t size);
/* The object was deleted, for certain. */
int apply_gone(struct watcher *watcher, const char *key, const char *uid);
/* The object exists, but is not selected. other_kind: it is a row of what the watch was about before. */
int apply_unselected(struct watcher *watcher, const char *key, const char *uid, bool other_kind);
