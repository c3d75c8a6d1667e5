/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The runs that workers have been given. */
#include "controller/controller.h"

/* The run whose handler is at work, or NULL. */
const struct queue_run *worker_run(const struct worker *worker);
/* How many it has that are not aside. */
size_t worker_unanswered(const struct worker *worker);
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
