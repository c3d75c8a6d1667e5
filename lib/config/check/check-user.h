/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* handler.user. Private to config/. */
#include "config/internal.h"

/* Fills in user, home, uid and gid, if it names one. */
void check_user(struct reader *reader, yaml_node_t *node, const char *key, struct config_handler *handler);
