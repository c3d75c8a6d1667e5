/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A watch whose confidential objects find no room in memory (`secrets.memory`) stands still until it is
 * begun anew with an empty store. If it is isolated, nothing ends the operator for it, so it is begun anew
 * here, as a reload would do it: there may be fewer objects by then, or more memory. That costs a LIST, so
 * the pauses grow. The watch counts as failed until it is in sync, and is told of once.
 *
 * Owned and related kinds that have been in sync stay as they are: their owner goes on with their objects,
 * and would have to wait for all of them.
 */
#include <stdbool.h>

#include "controller/watch.h"
#include "ipc/message.h"
#include "supervisor/watches/place.h"

/* Its watcher is in trouble; arms the next try if that is for lack of memory. True: the watch is such a try,
 * and goes on counting as failed. */
bool memory_retry_is_awaited(struct watch *watch, const struct message_degraded *degraded);
int memory_retry_over(struct watch *watch); /* it is in sync. -ENOMEM */
/* `watch` is the next try behind `former`: takes over its health, with this reason. -ENOMEM. */
int memory_retry_carry_over(const struct watch_place *former, enum watch_health health, const char *reason,
                            struct watch *watch);
