/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The steps by which a run writes to the API server, before its handler and after it, and their order:
 * our finalizer, then the answer's `children`, `patch`,
 * `status` and `conditions`, and last the finalizer of an object that is cleaned up.
 */
#include "worker/run/run.h"

/* Before the handler: puts our finalizer on, where the watch wants one. Ends in run_go_on(run,
 * RUN_STAGE_HANDLER) or run_finish(). */
void write_prepare(struct run *run);
/* The handler need not run: does nothing but put our finalizer on again, if it is missing. */
void write_unneeded(struct run *run);
/* Carries the answer out; ends in run_finish(). */
void write_start(struct run *run);
