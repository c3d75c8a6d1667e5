/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A run from its beginning to its end: which stage follows which. */
#include "worker/run/run.h"

/* Takes the RUN message, also on -ENOMEM, and begins the run; it may have ended already on return. The
 * worker must be idle. 0, -EPROTO (the message makes no sense), -ENOMEM. */
int run_start(struct worker *worker, struct message **message);
/* Ends what runs: TERM now, KILL after `grace_usec`. The run ends as CANCELLED. Called again, the earlier
 * end counts. */
void run_cancel(struct run *run, uint64_t grace_usec);
/* Drops a run without DONE; NULL is allowed. */
void run_free(struct run *run);
