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
void former_keep(struct dependents *dependents);
void former_find(struct dependents *dependents);
/* Nobody refers to it any more. */
void former_drop(const struct run *run, const struct dependent_list *list);
/* Leaves the dependent as the attempt has made it, and says so in the log and in the cause of the failure. */
void former_leave_lost(struct dependents *dependents, struct dependent *dependent);
