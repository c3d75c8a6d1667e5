/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects whose content must neither reach a disk nor a log: Secrets, and those that the configuration calls
 * confidential. Whatever we quote may end up in the ledger, in the journal and in Events.
 */
#include "kube/kube-error.h"
#include "worker/worker.h"

#define CONFIDENTIAL_WORDS_MAX 200

bool is_confidential(const struct worker *worker, const char *api_version, const char *kind);
/* The server's words; where they may quote a confidential object, only its code and reason, written into the
 * buffer. */
const char *confidential_words(bool confidential, const struct kube_error *error, char *buffer, size_t size);
