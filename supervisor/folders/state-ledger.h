/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Opens the ledger of the state folder. */
#include "base/error.h"

struct supervisor;

/* A damaged ledger is set aside, and that is logged. A state folder of another format is refused
 * (-EPROTONOSUPPORT), or with --discard-state left aside. Other errors are those of ledger_open(). */
int state_ledger_open(struct supervisor *supervisor, struct error *error);
