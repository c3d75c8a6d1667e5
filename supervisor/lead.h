/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One of several replicas (`replicas`). While another one leads, this one follows: only the credential process, the lease
 * process and the gateway run. When it leads, the others are started, and all is as with one replica, but that
 *
 * - workers are told how long the lead is valid, again after each renewal;
 * - if the lead is lost, or nothing is heard of it in time, the operator ends. The kernel kills the workers then, whatever
 *   becomes of us;
 * - at each end, once all that ran is reaped, and never before, the lead is released. Where a run was cut off, or a process
 *   failed, the record says so: a write may still be on its way. If we cannot prove it, or are killed, the Lease runs out.
 *
 * The ledger is right if nobody has led since we did (the record's epoch is the one that the state folder notes). Else its
 * rows are void: they go with a restart in place, and each object runs once.
 */
#include <stdbool.h>
#include <stdint.h>

#include "supervisor/children/lead-state.h"

/* Names the member. Once hash.key and slots of children are there. */
int lead_begin(struct supervisor *supervisor);
/* Called at the beginning of each turn, before anything is heard. */
void lead_see_time(struct supervisor *supervisor);
/* Takes a message of the lease process. -EPROTO. */
int lead_take(struct supervisor *supervisor, const struct message_lease *lease);
/* Gives the lead to another replica ("": any) by a restart in place. -EBUSY: we do not lead; -ECANCELED: the configuration
 * cannot be read, and `why` says it. */
int lead_step_down(struct supervisor *supervisor, const char *successor, char *why, size_t size);
