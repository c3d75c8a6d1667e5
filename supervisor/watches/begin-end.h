/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From the begin of a watch in its place to the end of the operator. */
#include "config/config.h"
#include "controller/controller-watch.h"

struct supervisor;

int supervisor_watches_new(struct supervisor *supervisor); /* the places; -ENOMEM */
void supervisor_watches_free(struct supervisor *supervisor);
/* In a free place. Negative errno. */
int watch_begin(struct supervisor *supervisor, const struct config_watch *config);
/* Its watcher is gone, and nothing of it runs: begins as at a start, with a new watcher. -EAGAIN: it takes
 * another turn. */
int watch_begin_again(struct watch *watch);
