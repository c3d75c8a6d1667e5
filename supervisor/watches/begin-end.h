/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A watch from its begin in its place to the end of the operator. */
#include <stdbool.h>

#include "config/config.h"
#include "controller/controller-watch.h"
#include "ipc/message.h"

struct supervisor;

int supervisor_watches_new(struct supervisor *supervisor); /* the places; -ENOMEM */
void supervisor_watches_free(struct supervisor *supervisor);
/* Begins the watch in a free place. Negative errno. */
int watch_begin(struct supervisor *supervisor, const struct config_watch *config);

/*
 * A watch whose confidential objects find no room in memory (`secrets.memory`) stands still until it begins again
 * with an empty store. Nothing ends the operator for it, so it begins again here, alone, with another watcher:
 * there may be fewer objects by then, or more memory. From then on no run of it begins; runs in flight may finish
 * first. That costs a LIST, so the pauses grow. The watch counts as failed until it is in sync, and is reported
 * once.
 *
 * Its owned and related kinds stay as they are. One of those that has been in sync begins again only with the
 * whole operator: its owner goes on with its objects, and would have to wait for all of them.
 */

/* Its watcher is in trouble; arms the next try if that is for lack of memory. True: the watch is such a try,
 * and goes on counting as failed. */
bool memory_retry_is_awaited(struct watch *watch, const struct message_degraded *degraded);
int memory_retry_over(struct watch *watch); /* it is in sync. -ENOMEM */
/* Goes on with tries that are due: at the end of a turn, and when a child has ended. */
void memory_retry_continue(struct supervisor *supervisor);
