/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Our finalizer on the run's object, and what goes from one watch of a kind to another with it. */
#include "worker/run/run.h"

/* Whether it is on the object: 1, 0; negative: the run was ended. */
int finalizer_is_there(struct run *run);
/* Steps of write.c, before the handler and last of all: whether it must be put on or taken off. 1, 0;
 * negative: the run was ended. */
int finalizer_is_wrong(struct run *run);
int finalizer_must_go(struct run *run);
/* Writes it, in both steps. 0, or why it cannot be started. */
int finalizer_send(struct run *run);
