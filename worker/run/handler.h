/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The handler of a run: a program for this run alone, or a process that serves one run after the other
 * (coprocess.h). How it ends is judged here; an answer is parsed, and goes on to RUN_STAGE_ANSWER.
 */
#include "worker/run/run.h"

/* Ends in run_go_on(run, RUN_STAGE_ANSWER) or run_finish(). */
void handler_run(struct run *run);
/* Ends a handler that is at work: TERM now, KILL after the grace. The run ends with it, through the same
 * callbacks. false: no handler is at work, not yet or not any more. */
bool handler_end(struct run *run, uint64_t grace_usec);
