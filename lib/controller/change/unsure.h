/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Rows that may lack what was handled last: after the machine went down, or if notes are lost. */
#include "controller/controller.h"

/* *ret: whether a release has written the ledger that keeps account of such rows. */
int unsure_begun(struct controller *controller, bool *ret);
/* why: for the log; NULL if there is no new reason. */
int unsure_begin(struct controller *controller, const char *why);
int unsure_load(struct watch *watch);
void unsure_over(struct watch *watch); /* all that it has was announced, and judged */
/* Whether the object is unchanged since its row was written: 1, 0; negative: the ledger has failed. */
int unsure_is_same(struct watch *watch, const struct record_change *change, const struct ledger_row *row);
