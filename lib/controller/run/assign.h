/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which worker gets which run. */
#include "controller/controller.h"

const struct queue_run *worker_run(const struct worker *worker); /* it is busy with this; NULL: nothing */
bool assign_is_under_way(const struct watch *watch, const char *key, const char *uid); /* a worker has it */
bool assign_may(const struct controller *controller);      /* somebody is free for what is due */
struct worker *assign_next(struct controller *controller); /* who gets the next run; NULL: nobody */
int assign_runs(struct controller *controller);
void assign_send(struct controller *controller); /* once the ledger knows of them */
/* An answer of a worker takes its run from it. -EPROTO: the worker was not given that, or does not do it
 * yet. */
int assign_take(struct worker *worker, const struct message_done *done, struct assignment *ret);
/* Another epoch of its watch has begun since it was given out. */
bool assignment_is_outdated(const struct controller *controller, const struct assignment *given);
/* Asks the worker to end its run of this object, or to give it back if it has not begun. */
void assign_cancel(const struct watch *watch, const char *key, const char *uid, const char *reason);
/* As people count, of a watch or (NULL) of all: a run that a worker was given and has not begun waits
 * still. */
struct queue_counts assign_count(const struct controller *controller, const struct watch *watch);
/* Runs that workers have not begun are to come back. */
void assign_recall(struct controller *controller, const char *reason);
