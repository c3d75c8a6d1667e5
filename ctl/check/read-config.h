/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "config/config.h"

/* The configuration (NULL: of the default place), which the caller frees, or NULL with every mistake said.
 */
struct config *ctl_load_config(const char *path);
