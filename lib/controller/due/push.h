/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* All that comes into the queue. delay_usec: from now on; 0: at once, or when the item says. -ENOMEM. */
#include "controller/controller.h"

int push_item(struct watch *watch, struct queue_item item, uint64_t delay_usec);
/* What the ledger owes an object. Priority, urgency and reason are the item's. */
int push_row(struct watch *watch, const struct ledger_row *row, struct queue_item item, uint64_t delay_usec);
/* A change. row: the ledger's of this object, or NULL. */
int change_push(struct watch *watch, const struct record_change *change, enum change_kind kind,
                const struct ledger_row *row, enum run_reason reason, uint64_t delay_usec);
