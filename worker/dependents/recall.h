/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When somebody has replaced an object's annotations, or has shortened the list there, the object does not know all its
 * dependents any more. The ledger still knows how many there were, of which kinds and in which namespaces, so those with
 * the label of the object's ApplySet are listed there, before anything is written, pruned or released. If one of these lists is refused,
 * the run fails, says which one, and is tried again. If the object has left the selection meanwhile, the
 * ledger has forgotten it; then kinds and namespaces come from the stores of what the watch owns.
 */
#include "worker/dependents/dependents.h"

/* Reads which kinds to look for into dependents->lost; none where the annotation has all of them. 0, -ENOMEM. */
int recall_begin(struct dependents *dependents);
/*
 * Anybody may have written the list. If the ledger does not prove it, and it has many more entries than the object had children,
 * the first of these are asked for one by one, and of the others those are children that their label finds. They are marked
 * (`beyond`, `doubted`). 0, -ENOMEM.
 */
int recall_doubt(struct dependents *dependents);
/* A phase (children.c). */
_warn_unused_ int recall_lost(struct dependents *dependents) _suspends_;
/* For the ledger: how many dependents the object has now, and their kinds, each with its namespace, if it has one, and
 * with the versions that the run knows of (object/child-kinds.h). 0; -ENODATA: they are as before; -ENOMEM. */
int recall_kinds(const struct run *run, struct text *out);
