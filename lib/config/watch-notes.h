/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The notes of each watch on objects, and their names. Private to config/. */
#include "config/internal.h"

/* Called once all watches are read: sets their finalizer_key, children_key and conditions. 0, -ENOMEM. */
int config_name_notes(struct config *config);
/* Checks one watch against those before it. */
void check_id(struct reader *reader, yaml_node_t *node, const char *path, struct config_watch *watch);
void notes_done(struct config_watch *watch);
