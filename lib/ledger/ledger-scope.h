/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The scope and the cluster that a watch's rows belong to. 0 or a negative errno; -EBADMSG: the entry is not
 * what was written. */
struct ledger;

/* "" when unknown. Both texts are owned by the caller. */
int ledger_scope_get(struct ledger *ledger, const char *watch, char **ret_scope, char **ret_cluster);
int ledger_scope_set(struct ledger *ledger, const char *watch, const char *scope, const char *cluster);
