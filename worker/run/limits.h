/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The limits of a handler's process, and whether one of them is why it ended. */
#include "process/process.h"
#include "worker/watch.h"

/* Fills in user, limits and cgroup; they are borrowed from the watch and the worker. */
void limits_apply(const struct worker *worker, const struct worker_watch *watch,
                  struct process_options *options);
/* Whether a limit is why the process ended; then `buffer` has "was ended for lack of memory ...". */
bool limits_explain(const struct record_watch *config, const struct process_result *result, char *buffer,
                    size_t size);
