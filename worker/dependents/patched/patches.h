/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Carrying out `patches`: fields of objects of others. Each is a server-side apply without force, by a field manager of the
 * owner and the watch, and with the UID of an object that was looked at: it creates nothing, and takes no field over. An
 * annotation on the owner, OPERATOR/patched, names the objects before the first apply. What an answer leaves out is given
 * up, and all when the owner goes: an apply without fields takes those away that nobody else has set.
 *
 * Objects whose managed fields have no entry of the manager are done, so neither a lost state folder nor an object that was
 * made anew matters.
 */
#include "worker/run/run.h"

/* Steps of write/write.c: after the children for an object that stays; before them for one that goes, and for what becomes a
 * child of it. 1, 0. */
int patches_are_due(struct run *run);
int patches_are_due_first(struct run *run);
/* Ends in step_done() or run_finish(). Called again, it begins anew. 0, or why it cannot begin. */
int patches_send(struct run *run);
