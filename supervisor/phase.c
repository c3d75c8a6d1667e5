/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/phase.h"

#include "supervisor/supervisor.h"

void supervisor_set_phase(struct supervisor *supervisor, enum supervisor_phase phase)
{
        supervisor->phase = phase;
        supervisor->controller.is_ending = phase > PHASE_RUNNING;
        supervisor->controller.is_over = supervisor->controller.is_over || phase == PHASE_TEARDOWN;
}
