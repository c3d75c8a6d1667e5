/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An object that is not selected any more: the store has forgotten it, but it exists. The server is asked
 * for it, so that the handler sees it as it is, and our finalizer can be taken off. If it is gone meanwhile,
 * the handler is shown its identity alone; whether it was deleted is not known here, and not said.
 */
#include "worker/run/run.h"

/* Ends in run_go_on(run, RUN_STAGE_PREPARE) or run_finish(). */
void unselected_fetch(struct run *run);
