/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How far the operator is in its life. */

struct supervisor;

enum supervisor_phase {
        PHASE_STARTING, /* not every child is ready */
        PHASE_RUNNING,
        PHASE_STOPPING_WORKERS, /* asked to stop: runs that are under way may finish */
        PHASE_STOPPING_REST,
        PHASE_TEARDOWN, /* something fatal: everything ends */
};

/* Tells the controller, too: behind PHASE_RUNNING no run begins, in PHASE_TEARDOWN it does nothing more. */
void supervisor_set_phase(struct supervisor *supervisor, enum supervisor_phase phase);
