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
/* Ends the run with the plan; text: what people read meanwhile. after_usec: until it is to go on. */
int park_run(struct run *run, const struct park_plan *plan, uint64_t after_usec, const char *text);
/* Once in a run: the plan's time counts only while the server answers. */
void park_count_time(struct dependents *dependents);
/* How long to wait before the server is asked again that did not answer. */
uint64_t park_silence_delay(const struct dependents *dependents);
/* Drops run->parked.resumed. */
void park_forget_resumed(struct run *run);
