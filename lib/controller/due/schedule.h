/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `schedules` and `startup` run without a change. Each is a watch of one ConfigMap that the operator makes. Its row in the ledger
 * says when it is due next (RUN_SCHEDULED, RUN_START), so that the rules of other objects hold for it: one run at a time, backoff,
 * quarantine (but for `startup`), and a run that a crash cuts off runs again. No change of its object counts.
 *
 * Time is that of a clock on the wall, which people set. What is planned keeps its time of day whatever they do: schedule_see_clock().
 */
#include "controller/controller.h"

/* The watch's object was announced, and has a row from now on. row: NULL if it has none yet. The caller then
 * asks what is due (due_arm()), as after schedule_begin(). -ENOMEM, or a ledger's error. */
int schedule_found(struct watch *watch, const struct record_change *change, const struct ledger_row *row);
/* The watch is in sync for the first time in its life: its row is planned by the present configuration and
 * by this start. The caller then asks what is due, likewise. */
int schedule_begin(struct watch *watch);
/* A row that is planned has its time. Returns whether it is to run; if not, *row says for which other time it waits. */
bool schedule_take(struct watch *watch, struct ledger_row *row);
/* A run of a schedule is about to be given to a worker. 1: it may begin; 0: its time is another one by now, and the caller asks
 * what is due. *ret_first: it is the first one for its time. Negative: a ledger's error. */
int schedule_give(struct watch *watch, const struct queue_run *run, bool *ret_first);
/* The first run for its time has not begun, and will be given again. */
int schedule_returned(struct watch *watch, struct ledger_row *row);
/* A run has ended, and its row says how. first: of schedule_give(). Returns whether its next time is in *row: nothing else is to
 * follow then. */
bool schedule_ended(struct watch *watch, struct ledger_row *row, const struct message_done *done,
                    bool first);
/* Plans again if somebody has set the clock since the last call. Returns whether rows may be due at other
 * times now. */
bool schedule_see_clock(struct controller *controller);
