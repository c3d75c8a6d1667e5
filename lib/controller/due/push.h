/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* All that comes into the queue. delay_usec: from now on; 0: at once, or when the item says. -ENOMEM. */
#include "controller/controller.h"

int push_item(struct watch *watch, struct queue_item item, uint64_t delay_usec);
/* Pushes what the ledger owes an object. Priority, urgency and reason are the item's. */
int push_row(struct watch *watch, const struct ledger_row *row, struct queue_item item, uint64_t delay_usec);
/* Pushes a change. row: the ledger's row of this object, or NULL. */
int change_push(struct watch *watch, const struct record_change *change, enum change_kind kind,
                const struct ledger_row *row, enum run_reason reason, uint64_t delay_usec);

/* Whether anything of a watch may run. */

/* Updates the queue: none of the watch's runs begins while it is paused, waits for owned objects, for `startup`
 * or for a credential, or while the operator is uninstalled. Must be called when one of these has changed. */
void pause_apply(struct watch *watch);
/* The first watch of an owned or related kind that is served and whose objects are not all known yet; NULL
 * if there is none. Until then no run of `parent` begins: a handler would take missing objects for deleted
 * ones. */
const char *owned_awaited(const struct watch *parent);
/* The watch of `startup`, whose handler has not succeeded in this start of the operator; NULL if there is none, or it has. */
const char *startup_pending(const struct controller *controller);
const char *startup_awaited(const struct watch *watch); /* likewise; NULL: this watch does not wait for it */
void owned_known(struct watch *watch);                  /* its owner may have waited for that */
