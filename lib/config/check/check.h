/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks that need more than one key. Private to config/. */
#include "config/internal.h"

void check_config(struct reader *reader); /* the whole, when all files are read */
void check_watch(struct reader *reader, yaml_node_t *node, const char *path, struct config_watch *watch);
void watch_defaults(struct config_watch *watch); /* all but texts, which check_watch() sets */
void watch_done(struct config_watch *watch);     /* frees what it holds */
/* Each kind that a watch owns becomes a watch. 0, -ENOMEM. */
int expand_owned(struct config *config);
