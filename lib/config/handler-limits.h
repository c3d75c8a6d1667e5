/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Limits of handlers. */
#include "config/config.h"

bool config_has_limits(const struct config_watch *watch);
/* Describes the limits of a watch's handler where control groups hold only these controllers (bits of
 * lib/os/cgroup.h): "" when all are held as they are meant. */
void config_limits_weakened(const struct config_watch *watch, unsigned controllers, char *buffer,
                            size_t size);
/* Sums the processes that each user of handlers may have (user_pids), from the limits of all watches. */
void sum_user_pids(struct config *config);
