/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Label selectors as the API server reads them: "app=web,tier in (a,b),!old,size>3". */
#include "base/error.h"
#include "selector/requirement.h"

/* 0; -ENOMEM; -EINVAL with what is wrong and where. "" selects everything: *ret is NULL. The list is the
 * caller's. */
int label_selector_parse(const char *text, struct requirement **ret, struct error *error);
