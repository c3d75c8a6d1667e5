/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* JSON as it may be recorded: each Secret in it, and each other confidential object, wherever it stands, is
 * reduced to apiVersion, kind, type, namespace, name, uid, and the keys of `data` and `stringData`, whose values are
 * the word "redacted". */
#include "base/text.h"
#include "worker/worker.h"

/* Appends `bytes` on one line: unchanged where it is JSON without a Secret, as a string where it is no JSON,
 * null where it is empty. *ret_redacted becomes true when something was taken out, and is left alone
 * otherwise.
 * confidential  the whole text speaks of a confidential object, also where it does not name its kind, as a
 *               patch of one does not; then no key is kept either */
void redact_append(const struct worker *worker, struct text *out, const char *bytes, size_t size,
                   bool confidential, bool *ret_redacted);
