/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `children: {wait: ...}`: a run is over when its dependents are ready. If some are not ready when
 * everything is written, the run is parked, and they are looked at again later by the same attempt. One that
 * has failed, or takes too long, is a failure of the attempt. An attempt waits in the same way for kinds
 * that its own answer defines, until the server serves them.
 */
#include "worker/dependents/dependents.h"

/* Notes whether it is ready, as this JSON shows it after it was applied. */
void wait_judge(struct dependents *dependents, struct dependent *dependent, const char *json, size_t size);
/* All is written: parks the run until all are ready. */
int wait_begin(struct run *run);

/* Whether the answer defines its kind, so that the server will serve it; then that is waited for. false: it
 * does not, or the time for it is over. */
bool wait_for_kind(struct dependents *dependents, struct dependent *dependent);
/* Parks the run until the kinds are served. */
int wait_begin_for_kinds(struct dependents *dependents);
/* Called when the same attempt goes on: takes over what it has done before it waited. */
void wait_take_over(struct dependents *dependents);

/* Takes over what the answer that is waited for says of the condition Ready. 0, -ENOMEM. */
int wait_take_ready(struct run *run, const struct park_plan *plan);
/* A phase (children.c): looks at each dependent that was not ready. */
_warn_unused_ int wait_look(struct dependents *dependents) _suspends_;
/* Whether the object waits for the end of its children, after its handler has finalized it: in this run, and when the
 * run began. */
bool wait_is_for_cleanup(const struct run *run);
bool wait_was_for_cleanup(const struct run *run);
/* Parks such a run: the handler has done its part, and does not run again. */
int wait_for_cleanup(struct run *run);
/* All are ready, and what the answer has left out is gone: RUN_WRITES, for the rest of the answer. */
int wait_succeed(struct dependents *dependents);
/* All were looked at: RUN_ATTEMPTS; RUN_WRITES, after what is to be dropped first where dependents->drop says so; negative:
 * the run was parked again, or has ended. */
int wait_finish(struct dependents *dependents);
