/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a step of write.c ends: with one of these, or with run_finish(). */
#include "kube/client.h"
#include "worker/run/run.h"

void step_done(struct run *run);
/* Begins it again, with the object as it is now. */
void step_again(struct run *run);
/* The server refused `what` ("handler's patch", "operator's finalizer" ...). Where the object, its kind or its status subresource may have
 * moved (404), the resource is looked up again and the step begins again, once in a run; else the run
 * ends. */
void step_failed(struct run *run, const char *what, const struct kube_response *response);
