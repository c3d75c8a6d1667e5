/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Our finalizer on the run's object, and what goes from one watch of a kind to another with it. */
#include "object/finalizer.h"
#include "worker/worker.h"

struct finalizer_view finalizer_view(const struct run *run);
bool finalizer_is_deleting(const struct run *run);
/* 1, 0; negative: the run was ended. */
int finalizer_is_there(struct run *run);
/* Of write.c's steps: before the handler, and at the end of what is carried out. */
int finalizer_is_wrong(struct run *run);
int finalizer_must_go(struct run *run);
int finalizer_send(struct run *run);
