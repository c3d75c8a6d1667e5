/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Two configurations compared. */
#include "config/config.h"

/* Whether something differs that concerns the whole operator and is only read at its
 * start; *ret_key names it ("heartbeat.interval"). */
bool config_differs(const struct config *old, const struct config *new, char *ret_key, size_t size);
