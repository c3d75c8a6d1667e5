/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The state folder: one instance at a time (a lock that dies with its process), and a small file with the
 * holder's pid, the number of starts and the last exit code, for people, the time of the last Events on
 * crashes (children/doubtful.h), and the ledger's clock (ledger-clock.h). And the runtime directory's
 * lock.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct supervisor;

/* -EBUSY: another instance has it, or no lock there can be trusted. */
int state_folder_take(struct supervisor *supervisor, struct error *error);
int runtime_folder_take(struct supervisor *supervisor, struct error *error);
/* false: one of them is not there any more, and that was fatal. */
bool state_folder_check(struct supervisor *supervisor);
/* Each writes the file again. */
void state_folder_note_exit(struct supervisor *supervisor);
void state_folder_note_crash_events(struct supervisor *supervisor, uint64_t now); /* by the ledger's clock */
void state_folder_note_time(struct supervisor *supervisor);

/* Opens the ledger of the state folder. A damaged ledger is set aside, and that is logged. A state folder of another format is refused
 * (-EPROTONOSUPPORT), or with --discard-state left aside. Other errors are those of ledger_open(). */
/* voids: the ledger that is there is void, and is removed first. */
int state_ledger_open(struct supervisor *supervisor, bool voids, struct error *error);
