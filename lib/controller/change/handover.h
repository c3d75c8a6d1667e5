/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "controller/controller.h"

/* An object has left `watch`, whose row of it is about to be removed: tells the other watches of the kind,
 * in the same commit. done: of the run that has told `watch`: whom it gave the list of children and whose
 * finalizer is on; NULL: there was none. 0 or a negative errno.
 */
int handover_tell(struct watch *watch, const struct ledger_row *row, const struct message_done *done);
/* Whether a run that is under way may be handing the object over to this watch. */
bool handover_is_under_way(const struct watch *watch, const char *key, const char *uid);
