/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ledger: what we owe, durable. SQLite (WAL, synchronous NORMAL, no automatic checkpoints), written by
 * the supervisor alone, in transactions that end once a turn of its loop (ledger_commit). Nothing is durable
 * before that commit. Commits write but never fsync: the log is synced a second later, and checkpoints are
 * made, beside the loop on a connection of their own (lib/ledger/database/checkpoint.h).
 *
 * While the log is begun again, the ledger cannot be written. Then ledger_try_commit() says so, changes stay
 * in memory, counts and lists for people are those of the last commit, and nothing is due. Other functions
 * that see or change more than single rows wait.
 *
 * One row per (watch, key, uid) that was ever handed to a handler and whose deletion is not handled. Times
 * are microseconds of the ledger's own clock (supervisor/folders/ledger-clock.c). Errors of writing, and of
 * an earlier sync, are -EIO or -ENOSPC: the supervisor ends with 74.
 *
 * This header opens and closes, and brings the others along:
 *
 *   rows.h             transactions; single rows, pages of them, those whose time has come, and how a row's
 *                      last run ended
 *   failing.h          how many rows there are, and fail; lists for people
 *   ledger-history.h   runs that did something
 *   ledger-scope.h     what a watch's rows belong to; paused watches; objects over which watchers died
 */
#include "base/error.h"
#include "ledger/failing.h"
#include "ledger/ledger-history.h"
#include "ledger/ledger-scope.h"
#include "ledger/rows.h"

struct ledger;

/* Opens the file, or creates it. A damaged file is set aside as ledger.sqlite.corrupt-<time> and a new one
 * begun: *ret_set_aside names it, owned by the caller, who says so loudly; NULL when nothing was set aside.
 * Errors, with a text in *error: -EPROTONOSUPPORT (the file has another format, and is unchanged), -EIO,
 * -ENOSPC, -EROFS, -EBUSY, -ENOMEM. */
int ledger_open(const char *path, struct ledger **ret, char **ret_set_aside, struct error *error);
/* Sets the file at `path`, which is not open, aside as PATH.<why>-<time>: *ret, owned by the caller. */
int ledger_set_aside(const char *path, const char *why, char **ret);
void ledger_free(struct ledger *ledger); /* commits, checkpoints, closes; NULL is ignored */
DEFINE_CLEANUP(struct ledger *, ledger_free);

/* Starts a checkpoint beside the loop when one is due: 4 MiB more in the log, or 60 s since the last one. */
void ledger_checkpoint_maybe(struct ledger *ledger);
/* Frees the memory of the cache, for a time in which nothing happens. */
void ledger_rest(struct ledger *ledger);
