/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From the begin of a watch in a free place to its end. */
#include "config/config.h"
#include "controller/watch.h"

struct supervisor;

/* Places for watches that reloads add; when they are used up, a reload restarts in place. */
#define WATCHES_SPARE 16

int watches_new(struct supervisor *supervisor); /* the places; -ENOMEM */
void watches_free(struct supervisor *supervisor);
/* A free place, for the watch of this configuration. -ENOSPC: there is none; -EAGAIN: another turn. */
int watch_begin(struct supervisor *supervisor, const struct config_watch *config, struct watch **ret);
/* Nothing new of it runs; its runs are cancelled when the grace is over. */
void watch_leave(struct watch *watch, uint64_t grace_usec);
/* The watch leaves, with all that it owns or depends on, and the reload that goes on at the end of the turn
 * begins it again, as it is configured. */
void watch_begin_anew(struct watch *watch);
/* Its watcher is gone and nothing of it runs. -EBUSY; -EAGAIN: it takes another turn. */
int watch_end(struct watch *watch);
