/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A change becomes an entry of the queue. */
#include "controller/controller.h"

/* row: the ledger's of this object, or NULL. delay_usec: from now on; 0: at once. -ENOMEM. */
int change_push(struct watch *watch, const struct record_change *change, enum change_kind kind,
                const struct ledger_row *row, enum run_reason reason, uint64_t delay_usec);
