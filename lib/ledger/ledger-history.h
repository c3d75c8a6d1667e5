/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs that did something, or failed, also of objects that are gone: the last HISTORY_OF_KEY of a key, and
 * HISTORY_IN_ALL of all keys. For people; nothing is decided by them. 0 or a negative errno.
 */
#include "ledger/row/row.h"

struct ledger;

/* Adds an entry of entry->times runs. One that wrote nothing is added to the newest of its key, if that is
 * of the same UID, action, result and error. In memory until ledger_commit(). */
int ledger_history_add(struct ledger *ledger, const struct ledger_history *entry);

/* Visits the newest entries of the key, or of all keys of the watch (""), at most `limit`, in their order. The entry
 * is borrowed for the call; a damaged one is left out. A negative return ends the visit and is returned.
 * While the ledger cannot be written, they are those of the last commit. */
typedef int (*ledger_visit_history_t)(const struct ledger_history *entry, void *userdata);
int ledger_visit_history(struct ledger *ledger, const char *watch, const char *key, size_t limit,
                         ledger_visit_history_t visit, void *userdata);
