/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the ledger says is due: long backoffs, requeueAfter, resync. */
#include "controller/controller.h"

void due_take(struct controller *controller); /* WAKE_DUE: hands due rows to the queue */
/* Asks to be woken for the next row that is due. Also when watches have come into sync since. */
void due_arm(struct controller *controller);
