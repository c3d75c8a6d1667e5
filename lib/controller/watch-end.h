/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A watch that is taken out, and its place. */
#include "controller/controller.h"

/* Its watcher is gone and nothing of it runs: its place is free. -EBUSY; -EAGAIN: it takes another turn. */
int watch_release(struct watch *watch);
void watch_empty(struct watch *watch); /* frees what it holds, without the queue */
