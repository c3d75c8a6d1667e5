/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether the API server could read the selectors of a watch. */
#include "config/internal.h"

/* Of the watch itself, and of the kinds that it owns or is related to. Private to config/. */
void check_selectors(struct reader *reader, yaml_node_t *node, const char *path, struct config_watch *watch);
