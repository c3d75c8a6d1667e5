/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Carries out the controller's decisions (struct controller_effects). */
#include "controller/controller.h"

struct supervisor;

extern const struct controller_effects supervisor_effects; /* userdata: struct supervisor */

void effects_tell_time(struct supervisor *supervisor); /* before each input of the controller */
void effects_free(struct supervisor *supervisor);
