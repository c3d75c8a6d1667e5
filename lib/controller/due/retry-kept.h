/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects that were given up get one more attempt when the operator is reloaded, and when a start finds
 * another handler: due/retry.c walks over them. The ledger has the stamp of the handler and the place of that
 * walk. stamp: a hash of all that identifies a handler (supervisor/handlers/stamp.h).
 */
#include "controller/controller.h"

#define RETRY_PACE 200U /* objects a second, where a walk makes them due at a pace */

void retry_walk_done(struct retry_walk *walk); /* it is over: RETRY_NOTHING */
/* A reload concerns this watch, whether it has a place already or not: a walk begins in the ledger. The watch
 * goes on with it after retry_kept_load(). */
int retry_kept_reload(struct controller *controller, const char *name, uint64_t stamp);
/* The watch goes on with the walk of the last life; with another handler a walk begins,
 * unless no former one is known. */
int retry_kept_load(struct watch *watch, uint64_t stamp);
/* Begins a walk over all rows, by hand. */
int retry_kept_all(struct watch *watch);
/* The place of the walk goes into the ledger, in the transaction of the rows that it has visited. */
int retry_kept_note(const struct watch *watch);
