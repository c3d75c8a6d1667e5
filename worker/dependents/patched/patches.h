/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Carrying out `patches`: fields of objects of others. Each is a server-side apply without force, by a field manager of the
 * owner and the watch, and with the UID of an object that was looked at: it creates nothing, and takes no field over. An
 * annotation on the owner, OPERATOR/patched, names the objects before the first apply. What an answer leaves out is given
 * up, and all when the owner goes: an apply without fields takes those away that nobody else has set.
 *
 * Objects whose managed fields have no entry of the manager are done, so neither a lost state folder nor an object that was
 * made again matters.
 */
#include "worker/run-state.h"

/* Steps of write/write.c: after the children for an object that stays; before them for one that goes, and for what becomes a
 * child of it. 1, 0. */
int patches_are_due(struct run *run);
int patches_are_due_first(struct run *run);
/* As what each step sends (write/write.c): 0; -EAGAIN: it begins again, with the object as it is now; another negative: it
 * cannot begin, or the run has ended. */
_warn_unused_ int patches_send(struct run *run) _suspends_;
