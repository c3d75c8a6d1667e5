/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The arguments that a watch's handler is started with. */
#include "ipc/message.h"

/* A list that ends with NULL; its strings are borrowed from `config` and must live as long. The caller frees
 * the list alone. NULL: no memory. */
char **arguments_build(const struct record_watch *config);
