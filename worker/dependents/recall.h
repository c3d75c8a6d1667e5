/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When somebody has replaced an object's annotations, the object does not know its dependents any more. The
 * ledger still knows of which kinds they were and in which namespaces, so those with the label of the object's
 * ApplySet are listed there, before anything is written, pruned or released. If one of these lists is refused,
 * the run fails, says which one, and is tried again. If the object has left the selection meanwhile, the
 * ledger has forgotten it; then kinds and namespaces come from the stores of what the watch owns.
 */
#include "worker/dependents/dependents.h"

/* Reads which kinds to look for into dependents->lost; none where the annotation is there. 0, -ENOMEM. */
int recall_begin(struct dependents *dependents);
/* A phase (phases.c). */
int recall_next(struct dependents *dependents);
/* The kinds of the dependents that the object has now, each with its namespace, if it has one, for the ledger:
 * "v1/Node,apps/v1/Deployment@default". 0; -ENODATA: they are as before; -ENOMEM. */
int recall_kinds(const struct dependents *dependents, struct text *out);
