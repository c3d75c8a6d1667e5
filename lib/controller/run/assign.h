/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which worker gets which run. */
#include "controller/controller.h"

bool assign_may(const struct controller *controller); /* a worker is free for what is due */
struct worker *assign_next(
        struct controller *controller); /* the worker that gets the next run; NULL if none */
int assign_runs(struct controller *controller);
void assign_send(struct controller *controller); /* once the ledger knows of them */
/* Takes back a run that has not left yet, though nothing of its watch is to begin any more. false: there is none. */
bool assign_take_unsent(struct controller *controller, struct assignment *ret);
/* Its run waits for the API server alone. -EPROTO: the worker was not given that, or has said it before. */
int assign_answered(struct worker *worker, const struct message_answered *answered);
/* An answer of a worker takes its run from it. -EPROTO: the worker was not given that. */
int assign_take(struct worker *worker, const struct message_done *done, struct assignment *ret);
/* Counts for people, of a watch or (NULL) of all: a run that waits in a worker for another run's handler counts
 * as queued. */
struct queue_counts assign_count(const struct controller *controller, const struct watch *watch);
