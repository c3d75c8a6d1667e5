/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a row's last run ended, for people. It belongs to the row and is removed with it; ledger_put() leaves
 * it. 0 or a negative errno. */
#include "ledger/row/row.h"

struct ledger;

/* Without such a row this does nothing. */
int ledger_run_put(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                   const struct ledger_run *run);

/* Calls `see` once, with zeros and "" where nothing is known; the texts are borrowed for the call. Returns
 * what `see` returns. While the ledger cannot be written, the run is that of the last commit. */
typedef int (*ledger_see_run_t)(const struct ledger_run *run, void *userdata);
int ledger_run_see(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                   ledger_see_run_t see, void *userdata);
