/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks a watch's handler: its command, and its credentials. Private to config/. */
#include "config/internal.h"

/* node, path: of the watch. */
void check_handler(struct reader *reader, yaml_node_t *node, const char *path, struct config_watch *watch);
