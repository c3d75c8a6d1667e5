/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A run from its beginning to its end: what follows what. */
#include "fiber/fiber.h"
#include "worker/run-state.h"

/* Carries the run out, to its end: DONE is sent then. The worker must be idle. 0; -ECANCELED: the worker ends, and
 * nobody hears of it; -EPROTO: the order makes no sense; or the channel's errno. */
_warn_unused_ int run_carry_out(struct worker *worker, const struct message_run *order) _suspends_;
/* Ends what runs: TERM now, KILL after `grace_usec`. The run ends as CANCELLED. Called again, the earlier
 * end counts. */
void run_cancel(struct run *run, uint64_t grace_usec);
/* The worker ends: the run unwinds in the next round, without DONE. */
void run_drop(struct run *run);
