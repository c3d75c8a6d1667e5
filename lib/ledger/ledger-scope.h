/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The scope and the cluster that a watch's rows belong to. 0 or a negative errno; -EBADMSG: the entry is not
 * what was written. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger;

/* "" when unknown. Both texts are owned by the caller. */
int ledger_scope_get(struct ledger *ledger, const char *watch, char **ret_scope, char **ret_cluster);
int ledger_scope_set(struct ledger *ledger, const char *watch, const char *scope, const char *cluster);

/* Paused watches: none of their runs starts. 0 or a negative errno; -EBADMSG: an entry is not what was
 * written. */

struct ledger_pause {
        uint64_t since_realtime; /* usec of the ledger's clock */
        uint64_t user;           /* UID of the user who asked for it */
        const char *reason;      /* never NULL, borrowed */
};

int ledger_pause_put(struct ledger *ledger, const char *watch, const struct ledger_pause *pause);
int ledger_pause_remove(struct ledger *ledger, const char *watch);
/* Calls `see` if the watch is paused, and returns what it returns; the text is borrowed for the call. 0: the
 * watch is not paused. */
typedef int (*ledger_see_pause_t)(const struct ledger_pause *pause, void *userdata);
int ledger_pause_see(struct ledger *ledger, const char *watch, ledger_see_pause_t see, void *userdata);

/*
 * Doubts: objects over which a watcher died or hung. No row needs to exist for them. Times are microseconds
 * of the ledger's clock. Errors: a negative errno; -EBADMSG: an entry is not what was written.
 */

struct ledger_doubt {
        const char *watch, *key, *uid; /* never NULL, borrowed */
        bool unread;                   /* not even the object's content is to be read */
        uint64_t crashes, crashed_realtime;
        uint64_t until_realtime; /* the end of the doubt */
        const char *error;
};

/* How many crashes; 0 = none. */
int64_t ledger_doubt_crashes(struct ledger *ledger, const char *watch, const char *key, const char *uid);
/* Inserts or replaces; also forgets doubts that ended 30 days before doubt->crashed_realtime. */
int ledger_doubt_put(struct ledger *ledger, const struct ledger_doubt *doubt);
/* Removes those of the key, whatever the UID; returns how many. */
int ledger_doubt_remove(struct ledger *ledger, const char *watch, const char *key);

/* Visits the doubts that have not ended at `now`, by watch, key and UID, at most `limit`; of one watch,
 * or of all (NULL). The doubt is borrowed for the call; the visitor must not write to the ledger. A
 * negative return ends the visit and is returned. Returns how many. */
typedef int (*ledger_visit_doubt_t)(const struct ledger_doubt *doubt, void *userdata);
int ledger_visit_doubts(struct ledger *ledger, const char *watch, uint64_t now, size_t limit,
                        ledger_visit_doubt_t visit, void *userdata);
