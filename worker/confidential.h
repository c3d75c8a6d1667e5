/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects whose content must neither lie on a disk nor stand in a log: Secrets, and what the configuration
 * calls confidential. All that we quote may end in the ledger, in the journal and in Events.
 */
#include "kube/error.h"
#include "worker/dependents/internal.h"

bool is_confidential(const struct worker *worker, const char *api_version, const char *kind);

/* The server's words, unless they may quote such an object; then only its code and reason. */
const char *confidential_words(bool confidential, const struct kube_error *error, char *buffer, size_t size);
#define WORDS_SIZE 200

/* The state that `onFailure: rollback` restores is kept in memory (lib/os/kept.h), and may be lost. */
void children_keep_former(struct children *children);
void children_find_former(struct children *children);
/* Nobody refers to it any more. */
void children_drop_former(const struct run *run, const struct child_list *list);
/* Leaves the child as the attempt has made it, and says so in the log and in the cause of the failure. */
void children_leave_lost(struct children *children, struct child_object *child);
