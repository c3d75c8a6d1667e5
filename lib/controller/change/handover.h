/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "controller/controller.h"

/* An object has left `watch`, whose row of it is about to be removed: tells the other watches of the kind,
 * in the same commit. heir: the watch that was given the list of children; "": none was. 0 or a negative
 * errno.
 */
int handover_tell(struct watch *watch, const struct ledger_row *row, const char *heir);
