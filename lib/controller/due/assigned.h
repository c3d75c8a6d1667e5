/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The runs that workers have been given. */
#include "controller/controller.h"

/* The run that the worker is busy with, or NULL. */
const struct queue_run *worker_run(const struct worker *worker);
/* The run of this object that a worker has, or NULL. */
struct assignment *assign_find(const struct watch *watch, const char *key, const char *uid);
/* A worker has a run of this object. */
bool assign_is_under_way(const struct watch *watch, const char *key, const char *uid);
/* Another epoch of its watch has begun since the run was given out. */
bool assignment_is_outdated(const struct controller *controller, const struct assignment *given);
/* Asks the worker to end its run of this object, or to return it if it has not begun. */
void assign_cancel(const struct watch *watch, const char *key, const char *uid, const char *reason);
/* Asks all workers to return the runs that they have not begun. */
void assign_recall(struct controller *controller, const char *reason);
