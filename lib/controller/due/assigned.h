/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The runs that workers have been given. */
#include "controller/controller.h"

/* The run whose handler is at work, or NULL. */
const struct queue_run *worker_run(const struct worker *worker);
/* How many of its runs have a handler at work, or wait for that one's end. */
size_t worker_busy_with(const struct worker *worker);
/* Whether this run of the worker has begun, in counts for people: a run that waits for another run's handler
 * has not. */
bool assignment_has_begun(const struct worker *worker, const struct assignment *given);
/* The run of this object that the worker has, or NULL; of whichever watch. */
struct assignment *worker_find(struct worker *worker, const char *key, const char *uid);
/* The run of this object that a worker has, or NULL. */
struct assignment *assign_find(const struct watch *watch, const char *key, const char *uid);
/* A worker has a run of this object. */
bool assign_is_under_way(const struct watch *watch, const char *key, const char *uid);
/* Another epoch of its watch has begun since the run was given out. */
bool assignment_is_outdated(const struct controller *controller, const struct assignment *given);
/* Asks the worker to end its run of this object, or to return it if it has no handler yet. */
void assign_cancel(const struct watch *watch, const char *key, const char *uid, const char *reason);
/* Asks all workers to return the runs that have no handler yet. */
void assign_recall(struct controller *controller, const char *reason);
