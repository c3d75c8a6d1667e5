/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Carrying out `children`: each is applied (server-side apply) in the order of kinds, what was left out is
 * deleted, and when the object goes they go. What an object has is remembered in an annotation on it,
 * OPERATOR/dependents, which is written before a dependent is made and shortened when it is gone: nothing is made
 * that is not remembered, and no list of the server is needed, unless somebody has taken the annotation off
 * (children-recall.c). Only what carries the object's ApplySet label is deleted, whatever the annotation
 * says.
 */
#include "worker/worker.h"

bool dependents_are_due(struct run *run);
/* A step of write.c: ends in write_step_done() or run_finish(). Called again, it goes on. */
int dependents_send(struct run *run);
/* Undoes what a failed attempt did: run->order->settling says what. Ends in run_finish(). */
void dependents_go_on(struct run *run);
/* Of the object as it is now, without what we ourselves write between attempts. */
uint64_t object_essence(const struct run *run);
/* What the run's dependents lack to be ready, if they are to be waited for; NULL: nothing. Borrowed. */
const char *dependents_waiting(const struct run *run);
void wait_begin(struct run *run); /* ends the run: it goes on without a worker */
/* The kinds of the dependents that the object has now, for the ledger; -ENODATA: as before. */
int recall_kinds(const struct dependents *dependents, struct text *out);
void park_forget_resumed(struct run *run);
void dependents_free(struct dependents *dependents);
