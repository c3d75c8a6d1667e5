/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Carries out what the controller decides. */
#include "controller/controller.h"

struct supervisor;

extern const struct controller_effects supervisor_effects; /* userdata: struct supervisor */

void effects_tell_time(struct supervisor *supervisor); /* before anything is told to the controller */
/* The operator ends, if the controller has said so: behind the input, never in the middle of it. */
void effects_end(struct supervisor *supervisor);
void effects_free(struct supervisor *supervisor);

/* The end of a turn: asked for once, it comes when all messages that are there have been told. */
void turn_settle_soon(struct supervisor *supervisor);
