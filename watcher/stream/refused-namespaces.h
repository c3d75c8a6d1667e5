/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Namespaces in which the server refuses a watch that names several (403). Each is logged once, when it begins
 * and when it is over, and shown in the status and in a metric for as long as it lasts. What is known of its
 * objects stays, and the other namespaces go on (failures.h).
 */
#include "watcher/stream/stream.h"

/* A failure of this stream was noted. */
void refused_namespaces_note(struct stream *stream);
/* The stream works. */
void refused_namespaces_over(struct stream *stream);
bool refused_namespaces_has(const struct stream *stream);
