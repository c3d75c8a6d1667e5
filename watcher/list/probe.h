/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The probe beside a watch that goes on after the connection was lost, or after a restart: one `?limit=1`
 * asks how far the server is. A list's version below the watch's own means that the cluster's database was
 * restored from a backup: the watch was accepted, and would stay silent until the server has caught up, with
 * everything that was undone still in the store (kubernetes#107457). Then everything is replaced by a LIST,
 * loudly. The cluster's identity is asked for again as well.
 *
 * A probe that fails counts towards the deadline of the watch, is reported, and is asked again at the pace
 * of failures. But the watch itself works. So a start, which waits to announce stored objects and to run
 * what is due, waits for the first answer only, whatever it is.
 */
#include "watcher/stream/stream.h"

/* Asks, if there is a reason to and no question is in flight. */
void probe_start(struct stream *stream);
/* The question is answered, perhaps by a LIST. */
void probe_answered(struct stream *stream);
/* The server is at version `found`: its database went back in time. */
void probe_found_older(struct stream *stream, const char *found);
