/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Label selectors (equality- and set-based) and field selectors. */
#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/error.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/version.h"

struct selector;

/* NULL or "" select everything. 0; -ENOMEM; -EINVAL with what is wrong. The selector is the caller's. */
int selector_parse(const char *labels, const char *fields, const struct resource *resource,
                   struct selector **ret, struct error *error);
bool selector_is_empty(const struct selector *selector);
bool selector_matches(const struct selector *selector, const struct version *version);
void selector_free(struct selector *selector);
