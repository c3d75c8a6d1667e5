/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The scope and the cluster that a watch's rows belong to. 0 or a negative errno; -EBADMSG: the entry is not
 * what was written. */
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
