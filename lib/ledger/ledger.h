/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ledger: what we owe, durable. SQLite (WAL, synchronous NORMAL, no automatic checkpoints), written by
 * the supervisor alone, in transactions that end once a turn of its loop (ledger_commit). Commits write but
 * never fsync: the log is synced a second later, and checkpoints are made, beside the loop on a connection
 * of their own (lib/ledger/checkpoint.c). While that one begins the log anew nothing can be written. Then
 * ledger_try_commit() says so, what is changed stays in memory, what is counted and listed for people is as
 * of the last commit, nothing is due; whatever else must see or change more than single rows waits.
 *
 * One row per (watch, key, uid) that was ever handed to a handler and whose deletion is not handled.
 * user_version holds the schema; older ones are migrated, newer ones refused (-EPROTONOSUPPORT). A corrupt
 * file is set aside as ledger.sqlite.corrupt-<time> and a new one begun: *ret_set_aside names it, and the
 * caller says so loudly. Times of rows are of the ledger's own clock (ledger-clock.c). Errors of writing,
 * and of syncing before, are -EIO or -ENOSPC: the supervisor ends with 74.
 */
#include "base/error.h"
#include "ipc/message.h"
#include "ledger/columns.h"
#include "os/kept.h"

struct ledger;

#define LEDGER_SCHEMA 6

struct ledger_row {
        char *key, *uid;
        LEDGER_STATE(LEDGER_WIDE)
        LEDGER_STATE(LEDGER_SMALL)
};

int ledger_open(const char *path, struct ledger **ret, char **ret_set_aside, struct error *error);
/* Errors: -EPROTONOSUPPORT (newer schema), -EIO, -ENOSPC, -EROFS, -EBUSY, -ENOMEM. *ret_set_aside: owned by
 * the caller; NULL when nothing was set aside. */
void ledger_free(struct ledger *ledger); /* commits, checkpoints, closes */

/* 0, -ENOENT. The row's strings are owned by the caller (ledger_row_done). */
int ledger_get(struct ledger *ledger, const char *watch, const char *key, const char *uid,
               struct ledger_row *ret);
/* The same, borrowed until the ledger is asked for another row. */
int ledger_look(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                const struct ledger_row **ret);
/* A row of which nothing is known, not in the ledger. */
int ledger_row_new(const char *key, const char *uid, struct ledger_row *ret);
/* Inserts or replaces the row. A text that is NULL is "". */
int ledger_put(struct ledger *ledger, const char *watch, const struct ledger_row *row);
/* Makes sure that a row exists, before the first RUN: an existing one is left as it is. 1: it is new. */
int ledger_owe(struct ledger *ledger, const char *watch, const char *key, const char *uid);
int ledger_remove(struct ledger *ledger, const char *watch, const char *key, const char *uid);
/* Of the run that it is owed. */
enum change_kind ledger_row_kind(const struct ledger_row *row);
/* Clears what the row says was handled, so that its object runs as soon as it is announced. */
void ledger_row_unknown(struct ledger_row *row);
bool ledger_row_is_suspect(const struct ledger_row *row); /* it runs alone and last */
void ledger_row_done(struct ledger_row *row);

/* Many rows will be looked at: in one transaction, each costs half. It ends with the commit. */
int ledger_hold(struct ledger *ledger);
/* The same, but -EBUSY where it cannot be written now: what looks at many rows behind this waits for nobody.
 */
int ledger_try_hold(struct ledger *ledger);
/* Writes what the calls above have changed, and ends the transaction; where there is nothing it does
 * nothing.
 */
int ledger_commit(struct ledger *ledger);
/* -EBUSY: not now, and all is as it was. */
int ledger_try_commit(struct ledger *ledger);
bool ledger_dirty(const struct ledger *ledger);
/* So much is in the transaction that to write it takes milliseconds: it is to wait for no more. */
bool ledger_is_full(const struct ledger *ledger);

/* Gives the memory of its cache back: for a time in which nothing happens. */
void ledger_rest(struct ledger *ledger);

/* How a row's last run ended: for people. It belongs to the row and goes with it; ledger_put() leaves it. */
struct ledger_run {
        LEDGER_RUN(LEDGER_LENT)
};
/* Without such a row it does nothing. */
int ledger_run_put(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                   const struct ledger_run *run);
typedef int (*ledger_see_run_t)(const struct ledger_run *run, void *userdata);
/* Calls once, with zeros and "" where nothing is known; the strings are borrowed for the call. */
int ledger_run_see(struct ledger *ledger, const char *watch, const char *key, const char *uid,
                   ledger_see_run_t see, void *userdata);

typedef int (*ledger_visit_t)(const char *watch, const struct ledger_row *row, void *userdata);
/* Rows of a watch behind (key, uid), in that order, at most `limit`; "" "" starts. Returns how many. */
int ledger_visit(struct ledger *ledger, const char *watch, const char *key, const char *uid, size_t limit,
                 ledger_visit_t visit, void *userdata);
/* Rows that are due at `now`, earliest first, at most `limit`; each once, until its time is
 * set anew or ledger_due_again() says so. */
int ledger_visit_due(struct ledger *ledger, uint64_t now, size_t limit, ledger_visit_t visit,
                     void *userdata);
/* How many of a watch are in quarantine. */
int64_t ledger_count_quarantined(struct ledger *ledger, const char *watch);
/* Those that have failed since their last success: of a watch; of all watches those that are given up first,
 * then what the server refuses, then by attempts. */
struct ledger_failing {
        uint64_t failing;
        uint64_t permanent, throttled; /* of them; never both */
};
int ledger_count_failing(struct ledger *ledger, const char *watch, struct ledger_failing *ret);
/* Pages: those of the watch of `behind` that fail or are in quarantine, behind its key and UID;
 * of all watches what has a time, in the order of these. Return how many. */
struct ledger_place {
        uint64_t next_realtime;
        const char *watch, *key, *uid;
};
int ledger_list_failing(struct ledger *ledger, const struct ledger_place *behind, size_t limit,
                        ledger_visit_t visit, void *userdata);
int ledger_list_quarantined(struct ledger *ledger, const struct ledger_place *behind, size_t limit,
                            ledger_visit_t visit, void *userdata);
int ledger_list_waiting(struct ledger *ledger, const struct ledger_place *behind, size_t limit,
                        ledger_visit_t visit, void *userdata);
/* The next one by its name that has or had rows, "" begins; NULL: there is none. Borrowed until rows are
 * written. */
const char *ledger_next_watch(struct ledger *ledger, const char *name);
/* Whether a watch of this name is configured; what is known of others is kept, and is nobody's trouble. */
struct ledger_known {
        bool (*is_known)(const char *watch, const void *userdata);
        const void *userdata;
};
/* `known` NULL: those of all. */
int ledger_visit_worst(struct ledger *ledger, size_t limit, const struct ledger_known *known,
                       ledger_visit_t visit, void *userdata);
/* When the next one will be that was not visited yet; 0 = none. Not later than that, but maybe sooner: rows
 * whose time was set anew are not looked for. */
int ledger_next_due(struct ledger *ledger, uint64_t now, uint64_t *ret_realtime);
void ledger_due_again(struct ledger *ledger);
int64_t ledger_count(struct ledger *ledger, const char *watch);

/* Objects that a watcher has died or hung over; no row of the ledger needs to exist for them. */
struct ledger_doubt {
        const char *watch, *key, *uid;
        bool unread; /* not even its content is to be read */
        uint64_t crashes, crashed_realtime, until_realtime;
        const char *error;
};
/* How often; 0 = never. */
int64_t ledger_doubt_crashes(struct ledger *ledger, const char *watch, const char *key, const char *uid);
/* Those that are long over are forgotten with it. */
int ledger_doubt_put(struct ledger *ledger, const struct ledger_doubt *doubt);
/* All of this key; returns how many. */
int ledger_doubt_remove(struct ledger *ledger, const char *watch, const char *key);
typedef int (*ledger_visit_doubt_t)(const struct ledger_doubt *doubt, void *userdata);
/* Those that are not over at `now`, in order, at most `limit`; of one watch, or of all (NULL). The visitor
 * must not write. Returns how many. */
int ledger_visit_doubts(struct ledger *ledger, const char *watch, uint64_t now, size_t limit,
                        ledger_visit_doubt_t visit, void *userdata);

/* A watch of which nothing runs. */
struct ledger_pause {
        uint64_t since_realtime, user;
        const char *reason; /* "" */
};
int ledger_pause_put(struct ledger *ledger, const char *watch, const struct ledger_pause *pause);
int ledger_pause_remove(struct ledger *ledger, const char *watch);
typedef int (*ledger_see_pause_t)(const struct ledger_pause *pause, void *userdata);
/* 0: it is not paused; else what `see` returns; the text is borrowed for the call. */
int ledger_pause_see(struct ledger *ledger, const char *watch, ledger_see_pause_t see, void *userdata);

/* What the rows of a watch belong to; "" when unknown. Strings are owned by the caller. */
int ledger_scope_get(struct ledger *ledger, const char *watch, char **ret_scope, char **ret_cluster);
int ledger_scope_set(struct ledger *ledger, const char *watch, const char *scope, const char *cluster);

/* Hands content of Secrets that older releases wrote here (for a rollback that is under way) to `keep`, and
 * writes the file anew without it, free pages and log included; once. Returns 1 when that was done now. */
typedef int (*ledger_keep_t)(const char *text, size_t size, char id[KEPT_ID_SIZE], void *userdata);
int ledger_erase_former(struct ledger *ledger, ledger_keep_t keep, void *userdata);
/* Whether an unfinished run refers to this text (lib/os/kept.h): 1, 0. */
int ledger_settling_names(struct ledger *ledger, const char *id);

/* Starts a checkpoint beside the loop when one is due (4 MiB more in the WAL, or 60 s since the last). */
void ledger_checkpoint_maybe(struct ledger *ledger);
DEFINE_CLEANUP(struct ledger *, ledger_free);
