/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What must outlive a leader: orders (pause, uninstallation), objects over which the operator has crashed, and what was in flight
 * when it was killed. Our ledger has all of it. The leader record has it as well, as lines (election/lasting.h), for the replica
 * that leads after us and whose own ledger knows nothing.
 *
 * - An order is confirmed once the record has it.
 * - If the operator fails, the record is released with what it has crashed over.
 * - If it is killed as a whole, nobody can say that. So a leader that finds a record that was not released names each object in
 *   the record before a run of it leaves, for ten minutes and until all have run. The objects that a dead leader has named are
 *   suspects. A suspect runs alone, and is named before that too: so its crashes are counted over all replicas.
 *
 * RUNs that have to be named wait for the record as they wait for the ledger: all that came meanwhile goes into one write, and
 * there are at most 20 of these a second.
 */
#include <stdbool.h>

struct supervisor;

/* What the record says as our lead begins. is_news: our ledger does not have it. Negative errno. */
int lasting_take(struct supervisor *supervisor, const char *lines, bool is_news);
void lasting_review(struct supervisor *supervisor); /* at the end of a turn */
void lasting_end(struct supervisor *supervisor);    /* nothing changes any more: before RELEASE */
