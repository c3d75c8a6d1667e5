/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects whose content must neither reach a disk nor a log: Secrets, and those that the configuration calls
 * confidential. Whatever we quote may end up in the ledger, in the journal and in Events.
 */
#include "kube/kube-error.h"
#include "worker/worker.h"

#define CONFIDENTIAL_WORDS_MAX 200

/* Whether such an object is confidential, by group and kind: an object is the same in each version. */
bool is_confidential(const struct worker *worker, const char *api_version, const char *kind);
/* A text about a run as tenants may read it, in conditions and Events: without the API server's address, the operator's
 * user, and the file that says who it is. The log has all of that. Cut to the buffer. */
void confidential_hide_operator(const struct worker *worker, const char *text, char *buffer, size_t size);
/* The server's words; where they may quote a confidential object, only its code, and its reason if that is one of Kubernetes'
 * own, written into the buffer. */
const char *confidential_words(bool confidential, const struct kube_error *error, char *buffer, size_t size);
