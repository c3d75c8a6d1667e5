/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Single rows by watch, key and UID, and pages of a watch's rows. Changes stay in memory until
 * ledger_commit(). 0 or a negative errno; -EBADMSG: a row is not what was written.
 */
#include <stdbool.h>

#include "ledger/row/row.h"

struct ledger;

/* -ENOENT: there is no such row. The row is owned by the caller (ledger_row_done). */
int ledger_get(struct ledger *ledger, const char *watch, const char *key, const char *uid,
               struct ledger_row *ret);
/* The same, borrowed until the next call that names a row. */
int ledger_look(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                const struct ledger_row **ret);

int ledger_put(struct ledger *ledger, const char *watch, const struct ledger_row *row); /* or replaces it */

/* Makes sure that a row exists, before the first RUN; an existing row is left as it is. 1: the row is
 * new. */
int ledger_owe(struct ledger *ledger, const char *watch, const char *key, const char *uid);
/* Without such a row this does nothing. */
int ledger_remove(struct ledger *ledger, const char *watch, const char *key, const char *uid);

/* Visits the rows of a watch after (key, uid), in that order, at most `limit`; "" "" starts. The
 * visitor may change rows. Returns how many rows were found. */
int ledger_visit(struct ledger *ledger, const char *watch, const char *key, const char *uid, size_t limit,
                 ledger_visit_t visit, void *userdata);
/* Whether an unfinished run refers to this content (lib/os/kept.h). Commits first. */
int ledger_settling_names(struct ledger *ledger, const char *id);

/* How a row's last run ended, for people. It belongs to the row and is removed with it; ledger_put() leaves
 * it. 0 or a negative errno. */

/* Without such a row this does nothing. */
int ledger_run_put(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                   const struct ledger_run *run);

/* Calls `see` once, with zeros and "" where nothing is known; the texts are borrowed for the call. Returns
 * what `see` returns. While the ledger cannot be written, the run is that of the last commit. */
typedef int (*ledger_see_run_t)(const struct ledger_run *run, void *userdata);
int ledger_run_see(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                   ledger_see_run_t see, void *userdata);

/* The end of a turn of the loop: what it has changed is written, in one transaction. 0 or a negative
 * errno; after a failed commit the changes are lost, and the ledger is as of the last commit. */

/* Begins a transaction in which many rows will be looked at: each costs half then. It ends with the
 * commit. */
int ledger_hold(struct ledger *ledger);
/* The same for a caller that then looks at many rows and must not wait: -EBUSY while the ledger cannot be
 * written. */
int ledger_try_hold(struct ledger *ledger);

/* Writes all changes and ends the transaction; without changes it does nothing. */
int ledger_commit(struct ledger *ledger);
int ledger_try_commit(struct ledger *ledger); /* -EBUSY: not now; nothing has changed */
bool ledger_dirty(const struct ledger *ledger);
/* The transaction is so large that writing it takes milliseconds: commit before more changes. */
bool ledger_is_full(const struct ledger *ledger);

/*
 * Rows in the order of the times at which they are due (next_realtime), each visited once until its time is
 * set again. Times are microseconds of the ledger's clock.
 */

/* Visits the rows that are due at `now`, earliest first, at most `limit`. The visitor may change rows.
 * Returns how many, or a negative errno; 0 as well while the ledger cannot be written: nothing is due
 * then. */
int ledger_visit_due(struct ledger *ledger, uint64_t now, size_t limit, ledger_visit_t visit,
                     void *userdata);
/* When the next row will be due that was not visited yet; 0 = none. Never too late, perhaps too early: rows
 * whose time was set again are not looked for. While the ledger cannot be written: `now`. */
int ledger_next_due(struct ledger *ledger, uint64_t now, uint64_t *ret_realtime);
void ledger_due_again(struct ledger *ledger); /* forgets which rows were visited */
