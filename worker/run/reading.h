/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The beginning of a run: the object, from the store or, where the store cannot know it, from the server; and what it
 * relates to.
 */
#include "worker/run-state.h"

/* What follows in the order of the run (run-state.h); negative: it has ended. A handler that did not ask for `unselected` is
 * told the end of an object that is gone, or that our finalizer has held while it was being deleted (write.c). */
_warn_unused_ int reading_begin(struct run *run) _suspends_;
/* RUN_PREPARES; negative: the run has ended, also where none of it has changed since the last success. */
_warn_unused_ int reading_related(struct run *run) _suspends_;
