/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Two configurations compared. */
#include "config/config.h"

#define DIFFER_KEY_SIZE 160

/* Whether a value differs, as it is in force: defaults count, comments and the order of keys do not. *ret_key
 * names the first one ("heartbeat.interval", "watches[widgets].handler.timeout"). */
bool config_differs(const struct config *old, const struct config *new, char *ret_key, size_t size);
