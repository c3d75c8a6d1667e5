/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A new configuration, watch by watch. It is taken over at once; its consequences are carried out as it
 * becomes possible, and reload_continue() looks at the state of things, not at what was done before, so that
 * one reload may come in the middle of another one.
 *
 * A watch whose watcher would be told something else, or that is not wanted any more, leaves: nothing new
 * of it runs, its runs may finish (for `stop.grace`, then they are cancelled), its watcher ends, and its
 * place is free. Its rows in the ledger stay. A watch that is wanted and has no place gets one, and
 * begins as at a start. All others keep their watcher, with its store and its connections. Workers are
 * told everything by their first message: each one ends when it is idle, and another one takes its place.
 */
#include "config/config.h"

struct supervisor;

/* Takes the configuration over and begins to carry it out. -ENOMEM: nothing has changed, and it is still the
 * caller's. */
int reload_apply(struct supervisor *supervisor, struct config *config);
/* Goes on with it, as far as that can be done now: at the end of a turn, and when a child has ended. */
void reload_continue(struct supervisor *supervisor);
