/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The checkpointer: a thread with a connection of its own that syncs the log a second after a commit, and
 * makes checkpoints. The loop's thread calls these functions. A gate keeps the two apart: while the
 * checkpointer begins the log again, no transaction starts.
 */
#include <stdbool.h>

#include "base/error.h"

struct checkpointer;

/* Starts the thread. *ret is owned by the caller. Errors, with a text in *error: those of ledger_errno(),
 * -ENOMEM, -EAGAIN (no thread). */
int checkpointer_new(const char *path, struct checkpointer **ret, struct error *error);
void checkpointer_free(struct checkpointer *checkpointer); /* waits until the thread has ended */

/* Asks for a checkpoint; if one is running, another one follows. */
void checkpointer_start(struct checkpointer *checkpointer);

/* Every transaction is between these two calls. Returns false when the gate is closed and `wait` is not
 * set. */
bool checkpointer_enter(struct checkpointer *checkpointer, bool wait);
/* Returns -EIO when the log could not be synced: how much of it is on the disk is unknown. */
int checkpointer_leave(struct checkpointer *checkpointer, bool committed);
