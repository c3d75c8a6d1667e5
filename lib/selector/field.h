/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Field selectors as the API server reads them: "metadata.name=a,status.phase!=Failed". */
#include "base/error.h"
#include "selector/requirement.h"

/* 0; -ENOMEM; -EINVAL with what is wrong. "" selects everything: *ret is NULL. Which fields a kind offers is
 * for the server to say. The list is the caller's. */
int field_selector_parse(const char *text, struct requirement **ret, struct error *error);
