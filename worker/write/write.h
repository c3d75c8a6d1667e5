/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The steps by which a run writes to the API server, before its handler and after it, and their order:
 * our finalizer, then the answer's `children`, `patch`,
 * `status` and `conditions`, and last the finalizer of an object that is cleaned up.
 */
#include "worker/run-state.h"

/* Before the handler. What follows in the order of the run (run-state.h); negative: it has ended. */
_warn_unused_ int write_prepare(struct run *run) _suspends_;
/* If the handler need not run: puts our finalizer on again if it is missing, and ends the run. */
_warn_unused_ int write_unneeded(struct run *run) _suspends_;
/* Carries the answer out. The run has ended then. */
int write_answer(struct run *run) _suspends_;
