/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* Whether this Authorization header (or NULL) carries the bearer token that the file holds now. */
bool gateway_token_matches(const char *file, const char *authorization);
