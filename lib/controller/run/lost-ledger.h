/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "controller/controller.h"

/* At the start. lost: just now; else what a former life has noted. */
int ledger_lost_load(struct controller *controller, bool lost);
void ledger_lost_review(struct controller *controller); /* nothing has run for a while: maybe it is whole */
