/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which worker gets which run. */
#include "controller/controller.h"

bool assign_may(const struct controller *controller);      /* somebody is free for what is due */
struct worker *assign_next(struct controller *controller); /* who gets the next run; NULL: nobody */
int assign_runs(struct controller *controller);
void assign_send(struct controller *controller); /* once the ledger knows of them */
/* An answer of a worker takes its run from it. -EPROTO: the worker was not given that, or does not do it
 * yet. */
int assign_take(struct worker *worker, const struct message_done *done, struct assignment *ret);
/* As people count, of a watch or (NULL) of all: a run that a worker was given and has not begun waits
 * still. */
struct queue_counts assign_count(const struct controller *controller, const struct watch *watch);
