/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Deletions that are done: HANDLED leaves for them once the ledger knows that. */
#include "controller/controller.h"

/* sequence: of the announcement. -ENOMEM. */
int handled_add(struct watch *watch, const char *key, const char *uid, uint64_t sequence);
void handled_send(struct watch *watch); /* after the commit */
void handled_forget(struct watch *watch);
