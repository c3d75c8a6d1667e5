/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* JSON as it may be kept: of each Secret in it, and whatever else is confidential, wherever it stands, only
 * apiVersion, kind, namespace and name. */
#include "worker/worker.h"

/* Appends `bytes` on one line: as it is where it is JSON without a Secret, as a string where it is no JSON,
 * null where it is empty. *ret_redacted becomes true when a Secret was taken out, and is left alone
 * otherwise. */
void redact_append(const struct worker *worker, struct text *out, const char *bytes, size_t size,
                   bool *ret_redacted);
