/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Handlers that have changed; supervisor.h includes it behind its structs. */
#include "supervisor/supervisor.h"

/* handler.c: whether handlers have changed is found out after each start and each reload. */
extern const char handler_reason[];
extern const char not_started_reason[]; /* outcome.c */
void handlers_review(struct supervisor *supervisor);
int handlers_continue(struct supervisor *supervisor);                /* at the end of a turn */
int handler_begin_pass(struct watch *watch, enum handler_pass pass); /* -ENOMEM */
int handler_note(const struct watch *watch);                         /* how far it is: into the ledger */
void handler_forget(struct watch *watch);
void handler_write_status(const struct watch *watch, struct text *json); /* a member, with a comma */
/* What a row counts was the former handler's. */
void handler_forgive(struct ledger_row *row);
/* Since this run was given out. stamp: of the files that it used; 0: not known. */
bool handler_was_replaced(const struct watch *watch, const struct assignment *given, uint64_t stamp);
/* A run that counts has used files with this stamp (0: none): others than those that were last looked at go
 * on record, with its row. */
int handler_used(struct watch *watch, uint64_t stamp);
/* Likewise, with the files as they are now: whatever has run is not there to tell. */
int handler_used_now(struct watch *watch);
