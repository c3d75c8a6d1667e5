/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When somebody has replaced an object's annotations, the object does not know its dependents any more. The
 * ledger still knows of which kinds they were, so those with the label of the object's ApplySet are listed,
 * before anything is written, pruned or released. If the object has left the selection meanwhile, the ledger
 * has forgotten it; then the kinds come from the stores of what the watch owns.
 */
#include "worker/dependents/dependents.h"

/* Reads which kinds to look for into dependents->lost; none where the annotation is there. 0, -ENOMEM. */
int recall_begin(struct dependents *dependents);
/* A phase (phases.c). */
int recall_next(struct dependents *dependents);
/* The kinds of the dependents that the object has now, for the ledger: "v1/ConfigMap,apps/v1/Deployment". 0;
 * -ENODATA: they are as before; -ENOMEM. */
int recall_kinds(const struct dependents *dependents, struct text *out);
