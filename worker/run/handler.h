/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The handler of a run: a program for this run alone, or a process that serves one run after the other
 * (coprocess.h). How it ends is judged here, and its answer is parsed.
 */
#include "worker/run-state.h"

/* RUN_WRITES; negative: the run has ended. */
_warn_unused_ int handler_run(struct run *run) _suspends_;
/* Ends a handler that is at work: TERM now, KILL after the grace. The run ends with it. false: no handler is at work, not yet or not any more. */
bool handler_end(struct run *run, uint64_t grace_usec);
