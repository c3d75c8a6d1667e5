/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Parking a run: it ends as SETTLING with a plan (plan.h), which the ledger keeps. The attempt goes on
 * later, in another run and perhaps another worker; until then no worker is held up. children_resume()
 * (children.h) goes on with it.
 *
 * Times are microseconds of the ledger's clock: a plan's deadline outlives the process, and setting the
 * machine's clock does not move it.
 */
#include "worker/dependents/dependents.h"
#include "worker/dependents/parked/plan.h"

uint64_t park_now(const struct run *run);
/* Ends the run with the plan. text: for people. after_usec: the delay until it goes on. */
int park_run(struct run *run, const struct park_plan *plan, uint64_t after_usec, const char *text);
/* Called once in a run: the plan's time counts only while the server answers. */
void park_count_time(struct dependents *dependents);
/* How long to wait before the server is asked again that did not answer. */
uint64_t park_silence_delay(const struct dependents *dependents);
/* Drops run->parked.resumed. */
void park_forget_resumed(struct run *run);

/*
 * The former content of confidential dependents, which `onFailure: rollback` restores. This content must not
 * reach a disk, so it is kept in memory (lib/os/kept.h), and may be lost; the plan in the ledger has its id
 * alone.
 */

/* Keeps what the attempt has changed; a failure is logged, and that dependent will not be restored. */
void former_keep(struct dependents *dependents);
/* Reads what the plan refers to; what is not there any more is marked as lost. */
void former_find(struct dependents *dependents);
/* Drops what the list refers to: nobody will restore it. */
void former_drop(const struct run *run, const struct dependent_list *list);
/* Leaves the dependent as the attempt has made it, and says so in the log and in the cause of the
 * failure. */
void former_leave_lost(struct dependents *dependents, struct dependent *dependent);
