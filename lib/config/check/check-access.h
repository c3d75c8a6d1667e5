/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Mistakes in what a handler is given for itself alone. Private to config/. */
#include "config/internal.h"

/* path: of the handler. */
void check_access(struct reader *reader, yaml_node_t *handler_node, const char *path,
                  struct config_handler *handler);
