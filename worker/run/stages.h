/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A run from its beginning to its end: which stage follows which. */
#include "fiber/fiber.h"
#include "worker/run/run.h"

/* Carries the run out, to its end: DONE is sent then, unless the worker ends. Takes the RUN message. The worker must be
 * idle. 0, -EPROTO (the message makes no sense), -ENOMEM. */
_warn_unused_ int run_carry_out(struct worker *worker, struct message **message) _suspends_;
/* Ends what runs: TERM now, KILL after `grace_usec`. The run ends as CANCELLED. Called again, the earlier
 * end counts. */
void run_cancel(struct run *run, uint64_t grace_usec);
/* The worker ends: the run unwinds in the next round, without DONE. */
void run_drop(struct run *run);
