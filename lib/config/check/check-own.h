/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Objects of the operator's own: the ConfigMaps of `schedules` and `startup`, which have watches, and the Leases of `replicas`.
 * Private to config/. */
#include "config/internal.h"

/* Makes a watch that check_watch() can check of an entry as it was read. */
void own_watch_complete(struct reader *reader, yaml_node_t *node, const char *path, bool is_startup,
                        struct config_watch *watch);
/* Called once all files are read: sets the namespaces and names of their objects, which contain the
 * operator's name. */
void check_own_objects(struct reader *reader);
/* Likewise for `replicas`, whose Leases are the operator's own as well. */
void check_replicas(struct reader *reader);
