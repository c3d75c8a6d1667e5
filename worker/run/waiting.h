/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs that were given to this worker and have not begun. They begin in their order, each when the one
 * before it has ended. If that one takes long, the others go back to the supervisor, for other workers to
 * do: no row, no count and no handler has noticed them yet.
 */
#include "worker/worker.h"

/* The run begins when those before it have ended; the message is taken. 0; -EPROTO: there are too many; or that one
 * cannot be begun or given back. */
int waiting_take(struct worker *worker, struct message **message);
/* Gives all back that have not begun. 0, or the channel's errno. */
int waiting_return(struct worker *worker);
void waiting_done(struct worker *worker);
