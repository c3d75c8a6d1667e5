/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The event loop, and the end of each turn: the controller settles what the turn has told it, and all that
 * goes on step by step does its next step.
 */

struct supervisor;

/* Makes the event source for the end of a turn. Negative errno. */
int loop_prepare(struct supervisor *supervisor);
/* Runs until the operator has ended. Returns its exit code, or a negative errno. */
int loop_run(struct supervisor *supervisor);
