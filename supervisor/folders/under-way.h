/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs that workers have, and runs that have ended and are not in the ledger yet, for the case that we are
 * ended by force: by a SIGKILL, because a handler took so much that the kernel ended the whole container, or
 * with the machine. They are in a mapped file of the state directory (plain stores, no system call), which
 * outlives us; it is not synced, so it says nothing about another boot.
 *
 * Such a run may have changed the world for an object that is changed back while we are down, and its row
 * says what was handled before. So the next start, before any change is judged, makes each of these rows one
 * that says nothing: it runs once. If the file cannot be trusted, this holds for all rows for which nothing
 * else can be proven (lib/controller/change/unsure.h).
 *
 * And it makes suspects of those that ran, in the same boot and with the same runtime directory. That is no
 * punishment: a suspect runs as soon as nothing else does, alone, and any end of that run clears it. Only
 * when the same happens again while a suspect runs, and by that nothing else, a crash is counted. So one
 * SIGKILL costs no object anything, and one that brings everything down each time is in quarantine after one
 * death more than `quarantine.after`.
 */
#include <stdbool.h>

#include "controller/controller.h"

struct supervisor;
struct under_way;

/* Judges the runs of the last life, and begins the file again. Negative errno. */
int under_way_begin(struct supervisor *supervisor);
void under_way_blameless(struct supervisor *supervisor); /* a death from now on is no object's fault */
void under_way_close(struct supervisor *supervisor); /* the ledger is closed: nothing is noted any more */
void under_way_free(struct under_way *under_way);
void under_way_note(struct supervisor *supervisor, struct assignment *given);
/* The run stays noted until the ledger has its outcome; a run that had not begun is dropped. True if so many
 * wait that the ledger should be committed. */
bool under_way_end(struct supervisor *supervisor, const struct assignment *given, bool has_begun);
void under_way_committed(struct supervisor *supervisor);
