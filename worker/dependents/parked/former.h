/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The former content of confidential dependents, which `onFailure: rollback` restores. This content must not
 * reach a disk, so it is kept in memory (lib/os/kept.h), and may be lost; the plan in the ledger has its id
 * alone.
 */
#include "worker/dependents/dependents.h"

/* Keeps what the attempt has changed; a failure is logged, and that dependent will not be restored. */
void former_keep(struct dependents *dependents);
/* Reads what the plan refers to; what is not there any more is marked as lost. */
void former_find(struct dependents *dependents);
/* Drops what the list refers to: nobody will restore it. */
void former_drop(const struct run *run, const struct dependent_list *list);
/* Leaves the dependent as the attempt has made it, and says so in the log and in the cause of the
 * failure. */
void former_leave_lost(struct dependents *dependents, struct dependent *dependent);
