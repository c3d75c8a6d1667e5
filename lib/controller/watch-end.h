/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a watch has, and how it begins again without it. */
#include "controller/controller.h"

void watch_empty(struct watch *watch); /* frees what it holds, without the queue */
/* Its watcher is gone and nothing of it runs: as at a start, but for counters and health. -EBUSY; -EAGAIN: it
 * takes another turn. */
int watch_renew(struct watch *watch);
