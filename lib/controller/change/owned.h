/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Changes of owned and related objects: their owners run. */
#include "controller/controller.h"

/* Takes an object of a watch that has an owner. -ENOMEM, -EPROTO. */
int owned_changed(struct watch *watch, const struct record_change *change);
/* This object may depend on a related one that has changed. */
int owned_related_changed(struct watch *parent, const struct ledger_row *row);
/* The changes of children that came while this run was in flight, now that it has ended; forgets them. */
int owned_changed_meanwhile(struct controller *controller, struct assignment *given, const char *key,
                            const char *uid);
/* A child changed while the run that has just succeeded was in flight: records in the ledger that the owner is
 * due. */
void owned_keep_due(const struct watch *watch, struct ledger_row *row);
