/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

#include "ledger/ledger.h"

extern bool checkpoint_gate_closed; /* the ledger's log is being begun anew: nothing can be written */

/* What SIGKILL leaves: whatever is not committed is lost. The ledger is freed by its own function then. */
void ledger_abandon(struct ledger *ledger);
