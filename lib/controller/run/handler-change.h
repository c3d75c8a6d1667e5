/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A handler that has changed is a change: objects that failed under the former one run again. */
#include "controller/controller.h"

/* A look at the handler's files. hash: 32 hex digits, under the key that controller->handler_key_name names;
 * NULL: they cannot be read. stamp: of the files, 0: not known. */
int handler_judge(struct watch *watch, const char *hash, uint64_t stamp);
int handler_begin_pass(struct watch *watch, enum handler_pass pass); /* -ENOMEM */
int handler_note(const struct watch *watch);                         /* how far it is: into the ledger */
void handler_forget(struct watch *watch);
/* What a row counts was the former handler's. */
void handler_forgive(struct ledger_row *row);
/* Since this run was given out. stamp: of the files that it used; 0: not known. */
bool handler_was_replaced(const struct watch *watch, const struct assignment *given, uint64_t stamp);
/* A run that counts has used files with this stamp (0: none): others than those that were last looked at go
 * on record, with its row. */
int handler_used(struct watch *watch, uint64_t stamp);
