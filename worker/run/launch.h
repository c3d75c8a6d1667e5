/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The program of a watch's handler: how it is started, and whether one of its limits is why it ended. */
#include "process/process.h"
#include "worker/watch.h"

/* Starts it with the arguments, user, grace and limits of the watch, and with this environment (NULL: no memory for it); the rest
 * of *options is the caller's. 0, or as for process_start(). */
int launch_handler(const struct worker *worker, const struct worker_watch *watch, char *const *environment,
                   struct process_options *options, struct process **ret);
/* Whether a limit is why the process ended; then `buffer` has "was ended for lack of memory ...". */
bool launch_explain_limit(const struct record_watch *config, const struct process_result *result,
                          char *buffer, size_t size);
