/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An object that is not selected any more: the store has forgotten it, but it exists. The server is asked
 * for it, so that the handler sees it as it is, and our finalizer can be taken off. If it is gone meanwhile,
 * the handler is shown its identity alone. A handler that did not ask for `unselected` is told the end of an
 * object that is gone, or that our finalizer has held while it was being deleted (write.c, begin_unselected).
 */
#include "worker/run-state.h"

/* RUN_PREPARES; negative: the run has ended. */
_warn_unused_ int unselected_fetch(struct run *run) _suspends_;
